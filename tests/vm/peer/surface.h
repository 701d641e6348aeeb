/*
 * What the programs surface_*.c share: guarded buffers, checksums, and opening devices.
 *
 * Each of them calls every function of its part of the C interface, with good and bad arguments,
 * and prints whatever comes out that a run on the same devices repeats. They are compiled against
 * rdma-core's libraries, against libuverbs.a, and (-DUVERBS_H) with uverbs.h; -DRDMA_CORE says
 * which release's headers and library to go by. All print the same, byte for byte.
 *
 * No pointers and no numbers of file descriptors are printed. errno is, where a call failed with -1
 * or NULL; calls that return the errno value leave in errno what they like.
 */
#ifndef SURFACE_H
#define SURFACE_H

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RDMA_CORE
#define RDMA_CORE 44
#endif

/* What no answer consists of. */
#define PATTERN 0xab

/* How far beyond a buffer it is looked for writes. */
#define GUARD 64

/* A buffer of this size, filled with the pattern, and as much after it. Never NULL. */
static inline uint8_t *guarded(size_t size)
{
	uint8_t *buffer = malloc(size + GUARD);

	if (!buffer) {
		perror("malloc");
		exit(3);
	}
	memset(buffer, PATTERN, size + GUARD);
	return buffer;
}

/*
 * Prints a checksum of the whole buffer, including padding and bytes that were not written, and
 * whether there was a write beyond it. Frees it.
 */
static inline void print_bytes(uint8_t *buffer, size_t size)
{
	uint64_t sum = 0xcbf29ce484222325;
	size_t untouched = 0, beyond = 0;

	for (size_t i = 0; i < size; i++) {
		sum = (sum ^ buffer[i]) * 0x100000001b3;
		untouched += buffer[i] == PATTERN;
	}
	for (size_t i = size; i < size + GUARD; i++)
		beyond += buffer[i] != PATTERN;
	printf(" bytes %016" PRIx64 " untouched %zu%s\n", sum, untouched,
	       beyond ? " WRITTEN BEYOND THE END" : "");
	free(buffer);
}

/*
 * The same of a call that may have failed. What a failure leaves in a buffer no man page says, and
 * releases of rdma-core differ in it; but nothing is written beyond the end.
 */
static inline void print_answer(int failed, uint8_t *buffer, size_t size)
{
	if (failed)
		memset(buffer, 0, size);
	print_bytes(buffer, size);
}

/* The result of a call that returns -1 on failure, and errno with it. */
static inline void print_result(const char *what, int result)
{
	if (result < 0)
		printf("%s: %d errno %d", what, result, errno);
	else
		printf("%s: %d", what, result);
}

#endif
