/*
 * Every function of libibumad that uverbs has, with good and bad arguments; see surface.h.
 */
#include <endian.h>
#include <unistd.h>

#include "surface.h"

#ifdef UVERBS_H
#include <uverbs.h>
#else
#include <infiniband/umad.h>
#endif

/* No device, in many ways. */
static const char *const strangers[] = {
	"nosuch0", "", ".", "a_name_that_is_longer_than_any_channel_adapter_has", NULL,
};

#define STRANGERS (sizeof(strangers) / sizeof(strangers[0]))

static const char *label(const char *name)
{
	return name ? name : "(default)";
}

/*
 * Names
 */

static void names(void)
{
	static const int rooms[] = {-1, 0, 1, 2, 3, 32, 128};

	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		size_t room = rooms[i] > 0 ? (size_t)rooms[i] : 0;
		uint8_t *cas;
		int count;

		/* Where the kernel has no RDMA, rdma-core writes a name even if there is no room. */
		if (!room && access("/sys/class/infiniband", F_OK))
			continue;
		cas = guarded(room * UMAD_CA_NAME_LEN);
		count = umad_get_cas_names((void *)cas, rooms[i]);
		printf("names %d: %d", rooms[i], count);
		for (int name = 0; name < count; name++)
			printf(" %s", (char *)cas + name * UMAD_CA_NAME_LEN);
		/* What follows a name within its room is of no interest. */
		for (int name = 0; name < count; name++) {
			char *text = (char *)cas + name * UMAD_CA_NAME_LEN;

			memset(text + strlen(text), 0, UMAD_CA_NAME_LEN - strlen(text));
		}
		print_bytes(cas, room * UMAD_CA_NAME_LEN);
	}
}

static size_t length(const struct umad_device_node *node)
{
	size_t count = 0;

	for (; node; node = node->next)
		count++;
	return count;
}

/* A list of `count` nodes, sorted with a size that may be wrong. */
static void sorted(size_t size)
{
	struct umad_device_node *head = umad_get_ca_device_list();
	size_t count = length(head);
	int result = umad_sort_ca_device_list(&head, size);

	printf("sort %zu of %zu: %d length %zu", size, count, result, length(head));
	/* The order is the folder's own, where it was not sorted. */
	if (!result && (!size || size == count))
		for (struct umad_device_node *node = head; node; node = node->next)
			printf(" %s", node->ca_name);
	printf("\n");
	umad_free_ca_device_list(head);
}

static void device_list(void)
{
	struct umad_device_node *head;
	size_t count;

	errno = 0;
	head = umad_get_ca_device_list();
	count = length(head);
	printf("list: %zu", count);
	if (!head)
		printf(" errno %d", errno);
	printf("\n");
	umad_free_ca_device_list(head);
	umad_free_ca_device_list(NULL);
	for (size_t size = 0; size <= count + 2; size++)
		sorted(size);
}

/*
 * Ports
 */

static void print_port(const umad_port_t *port)
{
	printf("port %d: ca %s lid %u lmc %u sm_lid %u sm_sl %u state %u phys %u rate %u cap %#x",
	       port->portnum, port->ca_name, port->base_lid, port->lmc, port->sm_lid, port->sm_sl,
	       port->state, port->phys_state, port->rate, be32toh(port->capmask));
	printf(" prefix %016" PRIx64 " guid %016" PRIx64 " link %s pkeys %u", be64toh(port->gid_prefix),
	       be64toh(port->port_guid), port->link_layer, port->pkeys_size);
	for (unsigned int i = 0; i < port->pkeys_size; i++)
		printf(" 0x%04x", port->pkeys[i]);
	printf("\n");
}

static void port(const char *name, int number)
{
	umad_port_t port;
	int result;

	memset(&port, 0, sizeof(port));
	result = umad_get_port(name, number, &port);
	printf("get_port %s %d: %d\n", label(name), number, result);
	if (result)
		return;
	print_port(&port);
	printf("release_port: %d", umad_release_port(&port));
	printf(" pkeys %u", port.pkeys_size);
	/* What is released holds nothing more. */
	printf(" again: %d\n", umad_release_port(&port));
}

static void ports(const char *name, int last)
{
	port(name, -1);
	for (int number = 0; number <= last + 1; number++)
		port(name, number);
	port(name, 10);
	port(name, 255);
	port(name, INT32_MAX);
}

/*
 * CAs
 */

static int count_ports(const umad_ca_t *ca)
{
	int count = 0;

	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
		count += ca->ports[i] != NULL;
	return count;
}

/* Returns the highest number of its ports. */
static int ca(const char *name)
{
	umad_ca_t ca;
	int result, last;

	memset(&ca, 0, sizeof(ca));
	result = umad_get_ca(name, &ca);
	printf("get_ca %s: %d\n", label(name), result);
	if (result)
		return 0;
	printf("ca %s: type %u ports %d fw '%s' type '%s' hw '%s' node %016" PRIx64
	       " system %016" PRIx64 "\n",
	       ca.ca_name, ca.node_type, ca.numports, ca.fw_ver, ca.ca_type, ca.hw_ver,
	       be64toh(ca.node_guid), be64toh(ca.system_guid));
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
		if (ca.ports[i])
			print_port(ca.ports[i]);
	last = ca.numports;
	printf("release_ca: %d ports", umad_release_ca(&ca));
	printf(" %d again: %d\n", count_ports(&ca), umad_release_ca(&ca));
	return last;
}

static void portguids(const char *name, int max)
{
	const size_t room = 16 * sizeof(__be64);
	uint8_t *guids = guarded(room);
	int count = umad_get_ca_portguids(name, (void *)guids, max);

	printf("portguids %s %d: %d", label(name), max, count);
	for (int i = 0; i < count; i++) {
		__be64 guid;

		memcpy(&guid, guids + (size_t)i * sizeof(guid), sizeof(guid));
		printf(" %016" PRIx64, be64toh(guid));
	}
	/* All of the room, so that more than was to be filled shows. */
	print_bytes(guids, room);
	printf("portguids %s no array %d: %d\n", label(name), max,
	       umad_get_ca_portguids(name, NULL, max));
}

static void adapter(const char *name)
{
	static const int rooms[] = {-1, 0, 1, 2, 3, 4, 5, 10, 16, INT32_MAX};
	int last = ca(name);

	/* Where it makes the structure itself, rdma-core reads a byte of such a name that it never wrote. */
	if (name && strlen(name) >= UMAD_CA_NAME_LEN)
		return;
	ports(name, last);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
		portguids(name, rooms[i]);
}

static void adapters(void)
{
	struct umad_device_node *head = umad_get_ca_device_list();

	umad_sort_ca_device_list(&head, 0);
	for (struct umad_device_node *node = head; node; node = node->next)
		adapter(node->ca_name);
	umad_free_ca_device_list(head);
	for (size_t i = 0; i < STRANGERS; i++)
		adapter(strangers[i]);
}

/* Messages go to stderr, hence nothing is asked at these levels. */
static void debug(void)
{
	static const int levels[] = {-1, 1, -1, 2, -7, 100, -1, 0, -1};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		printf("debug %d: %d\n", levels[i], umad_debug(levels[i]));
}

int main(void)
{
	printf("init: %d\n", umad_init());
	printf("init again: %d\n", umad_init());
	debug();
	names();
	device_list();
	adapters();
	printf("done: %d\n", umad_done());
	/* It has ended nothing. */
	names();
	return 0;
}
