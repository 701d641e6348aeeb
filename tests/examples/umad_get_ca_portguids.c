/*
 * umad_get_ca_portguids [CA]
 *
 * Prints the port GUIDs of a channel adapter, or of the first with an active port of
 * InfiniBand, or else of the first with a port that is not disabled:
 * umad_get_ca_portguids(3). It reads sysfs and opens no device.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#if __has_include(<uverbs.h>)
#include <uverbs.h>
#else
#include <infiniband/umad.h>
#endif

int main(int argc, char **argv)
{
	const char *ca_name = argc > 1 ? argv[1] : NULL;
	__be64 guids[UMAD_CA_MAX_PORTS];
	int count;

	if (argc > 2) {
		fprintf(stderr, "usage: umad_get_ca_portguids [CA]\n");
		return 2;
	}
	if (umad_init() < 0) {
		fprintf(stderr, "umad_init failed\n");
		return 1;
	}
	/* No adapter has more ports than this has room for. */
	count = umad_get_ca_portguids(ca_name, guids, UMAD_CA_MAX_PORTS);
	if (count < 0)
		/* -1 is no errno value here, but a failure without a reason. */
		fprintf(stderr, "port GUIDs of %s: %s\n", ca_name ? ca_name : "the default adapter",
			count == -1 ? "there is no such adapter" : strerror(-count));
	/* Port 0 is that of switches. What is 0 is no port. */
	for (int number = 0; number < count; number++)
		if (guids[number])
			printf("port %d: 0x%016" PRIx64 "\n", number, (uint64_t)be64toh(guids[number]));
	umad_done();
	return count < 0;
}
