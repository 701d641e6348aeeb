/*
 * Signals come all the time, and no system call is restarted after their handler: every question has
 * the answer that it had before the first of them. An argument says how often all is asked.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <infiniband/umad.h>
#include <infiniband/verbs.h>

#define ROOM 65536

static volatile sig_atomic_t signals;

static void count(int number)
{
	(void)number;
	signals++;
}

/* What is asked, one answer after the other. */
struct answers {
	size_t length;
	unsigned char bytes[ROOM];
};

static void add(struct answers *answers, const void *bytes, size_t length)
{
	if (length > ROOM - answers->length) {
		fprintf(stderr, "interrupted: more answers than there is room for\n");
		exit(1);
	}
	memcpy(answers->bytes + answers->length, bytes, length);
	answers->length += length;
}

static void ask_device(struct answers *answers, struct ibv_device *device)
{
	static struct ibv_gid_entry entries[64];
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	ssize_t gids;

	add(answers, ibv_get_device_name(device), strlen(ibv_get_device_name(device)));
	if (!context) {
		add(answers, "not opened", 10);
		return;
	}
	memset(&attr, 0, sizeof(attr));
	if (!ibv_query_device(context, &attr))
		add(answers, &attr, sizeof(attr));
	for (int number = 1; number <= attr.phys_port_cnt; number++) {
		memset(&port, 0, sizeof(port));
		if (!ibv_query_port(context, number, &port))
			add(answers, &port, sizeof(port));
	}
	memset(entries, 0, sizeof(entries));
	gids = ibv_query_gid_table(context, entries, 64, 0);
	add(answers, &gids, sizeof(gids));
	add(answers, entries, sizeof(entries));
	ibv_close_device(context);
}

static void ask(struct answers *answers)
{
	struct ibv_device **devices;
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int count = 0;

	answers->length = 0;
	devices = ibv_get_device_list(&count);
	add(answers, &count, sizeof(count));
	for (int i = 0; i < count; i++)
		ask_device(answers, devices[i]);
	if (devices)
		ibv_free_device_list(devices);

	memset(names, 0, sizeof(names));
	count = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	add(answers, &count, sizeof(count));
	for (int i = 0; i < count; i++) {
		__be64 guids[4] = {0};
		int ports = umad_get_ca_portguids(names[i], guids, 4);

		add(answers, names[i], strlen(names[i]));
		add(answers, &ports, sizeof(ports));
		add(answers, guids, sizeof(guids));
	}
}

int main(int argc, char **argv)
{
	static struct answers before, now;
	struct itimerval often = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}};
	struct sigaction action = {.sa_handler = count};
	int wanted = argc > 1 ? atoi(argv[1]) : 20, rounds = 0, differing = 0;

	ask(&before);
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &often, NULL)) {
		perror("interrupted");
		return 1;
	}
	/* A host without a device is asked faster than a timer's first signal comes. */
	while (rounds++ < wanted || !signals) {
		ask(&now);
		differing += now.length != before.length ||
			     memcmp(now.bytes, before.bytes, now.length);
	}
	printf("%zu bytes of answers; %d rounds differ; signals came\n", before.length, differing);
	return differing != 0;
}
