/* More memory than there is: `swap PROCESSES TIMES`. Processes fill TIMES times the memory that programs get, and find what
 * they have written; they inherit some pages, which they share. Pages go out and come back, dirty and clean. It ends
 * with 0 if all is as it was written. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, STEP = 73 };

/* What a word of a page has: the same nowhere else. */
static uint64_t value(uint64_t process, uint64_t page, uint64_t round, uint64_t word)
{
	return process << 48 ^ page << 24 ^ round << 16 ^ word;
}

static void fill(uint64_t *pages, uint64_t process, uint64_t page, uint64_t round)
{
	for (uint64_t word = 0; word < WORDS; word += STEP)
		pages[page * WORDS + word] = value(process, page, round, word);
}

static void check(const uint64_t *pages, uint64_t process, uint64_t page, uint64_t round)
{
	for (uint64_t word = 0; word < WORDS; word += STEP) {
		uint64_t wanted = value(process, page, round, word), found = pages[page * WORDS + word];
		if (found != wanted) {
			printf("process %lu, round %lu, page %lu, word %lu: %#lx in place of %#lx\n", process, round, page, word,
			       found, wanted);
			exit(1);
		}
	}
}

static uint64_t *map(uint64_t pages)
{
	void *place = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (place == MAP_FAILED) {
		puts("no room");
		exit(2);
	}
	return place;
}

/* Fills its own pages, writes every third of them again, and looks at all. What all share is its own where it writes. */
static void live(uint64_t process, uint64_t count, uint64_t *shared, uint64_t shared_count)
{
	uint64_t *pages = map(count);
	for (uint64_t page = 0; page < count; page++)
		fill(pages, process, page, 0);
	for (uint64_t page = 0; page < shared_count; page++) {
		check(shared, 0, page, 0);
		if (page % 2)
			fill(shared, process, page, 1);
	}
	for (uint64_t page = 0; page < count; page += 3) {
		check(pages, process, page, 0);
		fill(pages, process, page, 1);
	}
	for (uint64_t page = 0; page < count; page++)
		check(pages, process, page, page % 3 == 0);
	for (uint64_t page = 0; page < shared_count; page++)
		check(shared, page % 2 ? process : 0, page, page % 2);
}

/* A line of /proc/meminfo, in KiB. */
static unsigned long amount(const char *name)
{
	char line[128];
	unsigned long found = 0;
	FILE *file = fopen("/proc/meminfo", "r");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%lu", &found);
	if (file)
		fclose(file);
	return found;
}

int main(int count, char **words)
{
	if (count != 3)
		return 2;
	unsigned long processes = strtoul(words[1], 0, 10), times = strtoul(words[2], 0, 10);
	uint64_t pages = times * amount("MemTotal:") / (PAGE >> 10) / processes;
	uint64_t shared_count = pages / 8, *shared = map(shared_count);
	for (uint64_t page = 0; page < shared_count; page++)
		fill(shared, 0, page, 0);
	for (uint64_t process = 1; process <= processes; process++) {
		if (fork())
			continue;
		live(process, pages, shared, shared_count);
		exit(0);
	}
	int status, failed = 0;
	while (wait(&status) > 0)
		failed = WIFSIGNALED(status) || !failed ? status : failed;
	if (failed)
		return WIFSIGNALED(failed) ? 128 + WTERMSIG(failed) : WEXITSTATUS(failed);
	for (uint64_t page = 0; page < shared_count; page++)
		check(shared, 0, page, 0);
	printf("%lu processes have kept %lu times the memory, swap space: %lu KiB\n", processes, times, amount("SwapTotal:"));
	return 0;
}
