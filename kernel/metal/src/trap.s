# Entries: from user mode and from the kernel itself.
#
# Every exception and interrupt arrives on a stack of its CPU's (IST), so that none of them writes
# below the kernel's stack pointer: `core` and `alloc` come compiled with a red zone. One from the
# kernel is handled there, never sleeps, and returns from where it came. One from user mode, and a
# system call, ends the call of `enter_user` by which the thread went there.
#
# All fill a `Frame`: SSE registers, general registers, number, error code, and what `iretq` needs. Of
# the last word, the stack segment, a thread has always the same value.

.set LAST, 512 + 21 * 8                 # where a frame's last word lies
# In what follows the general registers:
.set SEGMENT, 3 * 8                     # the code segment
.set STATUS, 4 * 8                      # the flags
.set STACK, 5 * 8                       # the stack pointer

.macro save
    push rax
    push rbx
    push rcx
    push rbp
    push r9
    push r8
    push r10
    push rdx
    push rsi
    push rdi
    push r11
    push r12
    push r13
    push r14
    push r15
.endm

# Takes them from the frame at rdi.
.macro restore
    fxrstor64 [rdi]
    lea rsp, [rdi + 512]
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop rdi
    pop rsi
    pop rdx
    pop r10
    pop r8
    pop r9
    pop rbp
    pop rcx
    pop rbx
    pop rax
.endm

# To user mode, by the frame at rdi: where the kernel goes on at the next trap, and what that fills.
.macro leave_kernel
    push rbx
    push rbp
    mov gs:[{stack}], rsp
    lea rax, [rdi + LAST]
    mov gs:[{last}], rax
    restore
.endm

# The registers that a call must keep.
.macro push_preserved
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
.endm

.macro pop_preserved
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
.endm

.macro stub number
trap_\number:
    push 0
    push \number
    jmp trap
.endm
.macro stub_with_error number
trap_\number:
    push \number
    jmp trap
.endm

.section .text.trap, "ax"
.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 9, 15, 16, 18, 19, 20, 240, 241, 242, 255
    stub \number
.endr
.irp number, 8, 10, 11, 12, 13, 14, 17, 21
    stub_with_error \number
.endr

.macro gate number
    .quad \number, trap_\number
.endm
.section .rodata.trap, "a"
.align 8
.global trap_stubs
trap_stubs:
.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 9, 15, 16, 18, 19, 20, 240, 241, 242, 255, 8, 10, 11, 12, 13, 14, 17, 21
    gate \number
.endr
.global trap_stubs_end
trap_stubs_end:

.section .text.trap, "ax"
trap:
    cld
    test byte ptr [rsp + SEGMENT], 3
    jnz 1f
    save
    sub rsp, 512
    fxsave64 [rsp]
    mov rdi, rsp
    call metal_trap_in_kernel
    mov rdi, rsp
    restore
    add rsp, 16
    iretq
1:  swapgs
    mov gs:[{scratch}], rax
    mov rax, rsp
    mov rsp, gs:[{last}]
    push qword ptr [rax + STACK]
    push qword ptr [rax + STATUS]
    push qword ptr [rax + SEGMENT]
    push qword ptr [rax + 16]
    push qword ptr [rax + 8]
    push qword ptr [rax]
    mov rax, gs:[{scratch}]
    jmp leave_user

.global system_call_entry
system_call_entry:
    swapgs
    mov gs:[{scratch}], rsp
    mov rsp, gs:[{last}]
    push qword ptr gs:[{scratch}]
    push r11
    push {user_code}
    push rcx
    push 0
    push {system_call}
leave_user:
    save
    fxsave64 [rsp - 512]
    mov rsp, gs:[{stack}]
    pop rbp
    pop rbx
    ret

# enter_by_iret(frame: *mut Frame): runs the thread in user mode up to its next trap, which fills the
# frame. Called and returns with interrupts off. Keeps rbx and rbp only.
.global enter_by_iret
enter_by_iret:
    leave_kernel
    add rsp, 16
    swapgs
    iretq

# The same for a thread that goes on after a system call.
.global enter_by_sysret
enter_by_sysret:
    leave_kernel
    mov rsp, [rsp + STACK]
    swapgs
    sysretq

# switch_stacks(from: *mut usize, to: usize): saves the stack pointer and goes on with another one.
.global switch_stacks
switch_stacks:
    push_preserved
    mov [rdi], rsp
    mov rsp, rsi
    pop_preserved
    ret

# Where a new context begins; `rbx` has its address.
.global begin_context
begin_context:
    xor ebp, ebp
    mov rdi, rbx
    call metal_begin
    ud2

# try_load(address, &mut value) and try_store(address, value): 0, or 1 after a page fault.
.global try_load
try_load:
    mov rax, [rdi]
    mov [rsi], rax
    xor eax, eax
    ret
.global try_store
try_store:
    mov [rdi], rsi
    xor eax, eax
    ret
# try_exchange(address, expected, new, &found): 0, or 1 after a page fault.
.global try_exchange
try_exchange:
    mov eax, esi
try_exchange_word:
    lock cmpxchg [rdi], edx
    mov [rcx], eax
    xor eax, eax
    ret

# try_copy(from, to, bytes): 0, or the bytes that were left when a page fault came.
.global try_copy
try_copy:
    xchg rdi, rsi
    mov rcx, rdx
    shr rcx, 3
    and edx, 7
try_copy_words:
    rep movsq
    mov ecx, edx
try_copy_bytes:
    rep movsb
    mov rax, rcx
    ret
access_failed:
    mov eax, 1
    ret
words_failed:
    lea rax, [rcx * 8 + rdx]
    ret
bytes_failed:
    mov rax, rcx
    ret

# Where an access by the kernel may fault, and where it goes on then.
.section .rodata.trap, "a"
.global fixups
fixups:
    .quad try_load, access_failed
    .quad try_store, access_failed
    .quad try_exchange_word, access_failed
    .quad try_copy_words, words_failed
    .quad try_copy_bytes, bytes_failed
.global fixups_end
fixups_end:
