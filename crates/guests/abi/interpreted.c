/* Programs that name an interpreter (PT_INTERP), made of bytes. */
#include "abi.h"
#include <elf.h>

/* The place of segments, and of code in files. */
enum { PLACE = 0x10000000, CODE = 0x200 };

/* exit(42); and exit(7). */
static const unsigned char good[] = { 0xbf, 42, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
static const unsigned char other[] = { 0xbf, 7, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };

/* Writes a file with this code, which names `interpreter` if there is one, and says that its path has so many bytes. */
static void make(const char *name, int type, const unsigned char *code, const char *interpreter, size_t bytes)
{
	unsigned char file[PAGE] = { 0 };
	Elf64_Addr base = type == ET_EXEC ? PLACE : 0;
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = type,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = base + CODE,
		.e_phoff = sizeof header,
		.e_ehsize = sizeof header,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = interpreter ? 2 : 1,
	};
	Elf64_Phdr parts[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = base,
		  .p_filesz = sizeof file,
		  .p_memsz = sizeof file,
		  .p_align = PAGE },
		{ .p_type = PT_INTERP, .p_offset = 2 * CODE, .p_filesz = bytes },
	};
	memcpy(file, &header, sizeof header);
	memcpy(file + sizeof header, parts, sizeof parts);
	memcpy(file + CODE, code, sizeof good);
	if (interpreter)
		strcpy((char *)file + 2 * CODE, interpreter);
	int to = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0755);
	need(to >= 0 && write(to, file, sizeof file) == sizeof file, name);
	close(to);
}

/* Makes a program that names the interpreter, and runs it. */
static void run(const char *what, int type, const char *interpreter, size_t bytes)
{
	make("program", type, other, interpreter, bytes);
	pid_t child = fork();
	need(child >= 0, "fork");
	if (child == 0) {
		execl("program", "program", NULL);
		tell(what, -1);
		_exit(0);
	}
	reap(what, child);
}

static void run_of(const char *what, const char *interpreter)
{
	run(what, ET_DYN, interpreter, strlen(interpreter) + 1);
}

int main(void)
{
	enter_folder();
	make("fixed", ET_EXEC, good, NULL, 0);
	make("anywhere", ET_DYN, good, NULL, 0);
	run("no interpreter", ET_DYN, NULL, 0);
	run_of("an interpreter", "./anywhere");
	run_of("a fixed one", "./fixed");
	run("of a fixed program", ET_EXEC, "./anywhere", sizeof "./anywhere");
	run_of("a missing one", "./missing");
	run_of("a folder", ".");
	run_of("in a file", "./fixed/x");
	need(mkfifo("pipe", 0755) == 0, "mkfifo");
	int text = open("text", O_CREAT | O_WRONLY, 0755);
	for (int i = 0; i < 64; i++)
		need(write(text, "no ELF file", 11) == 11, "write");
	run_of("one that is written", "./text");
	close(text);
	run_of("no ELF file", "./text");
	need(chmod("anywhere", 0644) == 0, "chmod");
	run_of("one that is not executable", "./anywhere");
	run("no path", ET_DYN, "", 1);
	run("a path without an end", ET_DYN, "./fixed", strlen("./fixed"));
	run("a path that is too long", ET_DYN, "./fixed", 5000);
	run("a path beyond the file", ET_DYN, "./fixed", 4000);
	return 0;
}
