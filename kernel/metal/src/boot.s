# From the loader to Rust: 32-bit protected mode without paging (PVH), then long mode.
# The other CPUs come from real mode, by way of the page at TRAMPOLINE.

.set BASE, 0xffffffff80000000           # virtual minus physical addresses of the kernel's image
.set TRAMPOLINE, 0x8000
.set TABLE, 0x3                         # present, writable
.set NO_EXECUTE, 1 << 63
.set CR4, (1 << 5) | (1 << 7) | (1 << 9) | (1 << 10)    # PAE, PGE, OSFXSR, OSXMMEXCPT
.set EFER, 1 | (1 << 8) | (1 << 11)     # SCE, LME, NXE
.set CR0, 1 | (1 << 1) | (1 << 4) | (1 << 5) | (1 << 16) | (1 << 31)  # PE, MP, ET, NE, WP, PG

.section .note.pvh, "a", @note
.align 4
.long 4, 4, 18                          # bytes of the name and of the value; XEN_ELFNOTE_PHYS32_ENTRY
.asciz "Xen"
.long pvh_start - BASE

# The kernel's root table: the first 4 GiB of physical memory at 0 (until all CPUs run) and at the
# direct map, and the first GiB at BASE.
.section .data.boot, "aw"
.align 4096
.global boot_root
boot_root:
    .quad direct_upper - BASE + TABLE
    .fill 255, 8, 0
    .quad direct_upper - BASE + TABLE + NO_EXECUTE
    .fill 253, 8, 0
    .quad stacks_upper - BASE + TABLE + NO_EXECUTE
    .quad image_upper - BASE + TABLE
.global direct_upper
direct_upper:
    .quad lower - BASE + TABLE, lower - BASE + 0x1000 + TABLE
    .quad lower - BASE + 0x2000 + TABLE, lower - BASE + 0x3000 + TABLE
    .fill 508, 8, 0
image_upper:
    .fill 510, 8, 0
    .quad lower - BASE + TABLE, 0
.global stacks_upper
stacks_upper:
    .fill 512, 8, 0
.set page, 0
lower:
.rept 2048
    .quad page + 0x183                  # present, writable, 2 MiB, global
    .set page, page + 0x200000
.endr

boot_gdt:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
boot_gdt_pointer:
    .word 23
    .quad boot_gdt - BASE

.section .text.boot, "ax"
.macro enter_long_mode
    movl $CR4, %eax
    movl %eax, %cr4
    movl $(boot_root - BASE), %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    movl $EFER, %eax
    xorl %edx, %edx
    wrmsr
    movl $CR0, %eax
    movl %eax, %cr0
.endm

.code32
.global pvh_start
pvh_start:
    cli
    cld
    movl %ebx, %esi
    enter_long_mode
    lgdtl boot_gdt_pointer - BASE
    ljmpl $8, $(1f - BASE)
.code64
1:  movabsq $first_high, %rax
    jmp *%rax
first_high:
    movabsq $boot_stack_top, %rsp
    xorl %ebp, %ebp
    movl %esi, %edi
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    call metal_boot
    ud2

# Copied to TRAMPOLINE.
.code16
.global trampoline_start
trampoline_start:
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl TRAMPOLINE + trampoline_gdt_pointer - trampoline_start
    enter_long_mode
    ljmpl $8, $(TRAMPOLINE + 2f - trampoline_start)
.code64
2:  movabsq $other_high, %rax
    jmp *%rax
trampoline_gdt_pointer:
    .word 23
    .long boot_gdt - BASE
.global trampoline_end
trampoline_end:

other_high:
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movabsq $starting_stack, %rax
    movq (%rax), %rsp
    movabsq $starting_cpu, %rax
    movq (%rax), %rdi
    xorl %ebp, %ebp
    call metal_cpu
    ud2

.section .bss.boot, "aw", @nobits
.align 4096
    .skip 65536
boot_stack_top:
