/*
 * What rdma-core's libraries answer to the questions that uverbs answers: a line for each answer,
 * in a form that the scenarios make of our answers too and compare.
 *
 *   answers verbs DEV     libibverbs: GID entries, GID tables, ports, P_Keys, the device
 *   answers gone DEV      libibverbs, when a line comes in
 *   answers events DEV N  libibverbs: the next N asynchronous events; ends if they do not come
 *   answers umad ROOM…    libibumad: names, CAs, ports, and port GUIDs with room for so many, with
 *                         all their errors
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/umad.h>
#include <infiniband/verbs.h>

static void print_gid(const union ibv_gid *gid)
{
	for (int i = 0; i < 16; i++)
		printf("%02x", gid->raw[i]);
}

static void print_entry(const struct ibv_gid_entry *entry)
{
	printf("%" PRIu32 " %" PRIu32 " ", entry->port_num, entry->gid_index);
	print_gid(&entry->gid);
	printf(" type %" PRIu32 " ifindex %" PRIu32 "\n", entry->gid_type, entry->ndev_ifindex);
}

static void gid_entry(struct ibv_context *context, uint32_t port, uint32_t index)
{
	struct ibv_gid_entry entry;
	int error = ibv_query_gid_ex(context, port, index, &entry, 0);

	printf("gid %" PRIu32 " %" PRIu32 ": ", port, index);
	if (error)
		printf("errno %d\n", error);
	else
		print_entry(&entry);
}

static void gid_table(struct ibv_context *context, size_t room)
{
	struct ibv_gid_entry *entries = calloc(room + 1, sizeof(*entries));
	ssize_t count = ibv_query_gid_table(context, entries, room, 0);

	printf("table %zu: %zd\n", room, count);
	for (ssize_t i = 0; i < count; i++) {
		printf("table %zu: ", room);
		print_entry(&entries[i]);
	}
	free(entries);
}

static void port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr)
{
	int error = ibv_query_port(context, number, attr);

	printf("port %u: ", number);
	if (error) {
		printf("errno %d\n", error);
		return;
	}
	printf("state %d max_mtu %d active_mtu %d gid_tbl_len %d cap %#x max_msg_sz %u", attr->state,
	       attr->max_mtu, attr->active_mtu, attr->gid_tbl_len, attr->port_cap_flags,
	       attr->max_msg_sz);
	printf(" bad_pkey %u qkey_viol %u pkey_tbl_len %u lid %u sm_lid %u lmc %u", attr->bad_pkey_cntr,
	       attr->qkey_viol_cntr, attr->pkey_tbl_len, attr->lid, attr->sm_lid, attr->lmc);
	printf(" max_vl %u sm_sl %u subnet_timeout %u init_type %u width %u speed %u phys %u link %u",
	       attr->max_vl_num, attr->sm_sl, attr->subnet_timeout, attr->init_type_reply,
	       attr->active_width, attr->active_speed, attr->phys_state, attr->link_layer);
	printf(" flags %u cap2 %#x\n", attr->flags, attr->port_cap_flags2);
}

static void pkey(struct ibv_context *context, uint8_t number, int index)
{
	__be16 value;

	if (ibv_query_pkey(context, number, index, &value))
		printf("pkey %u %d: none\n", number, index);
	else
		printf("pkey %u %d: 0x%04x\n", number, index, be16toh(value));
}

static void device(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr;
	const struct ibv_device_attr *base = &attr.orig_attr;
	int error = ibv_query_device_ex(context, NULL, &attr);

	if (error) {
		printf("device: errno %d\n", error);
		return;
	}
	printf("device: node %016" PRIx64 " sys_image %016" PRIx64 " max_mr_size %" PRIu64
	       " page_size_cap %" PRIu64,
	       be64toh(base->node_guid), be64toh(base->sys_image_guid), base->max_mr_size,
	       base->page_size_cap);
	printf(" vendor %u part %u hw %u max_qp %d max_qp_wr %d flags %#x max_sge %d max_sge_rd %d",
	       base->vendor_id, base->vendor_part_id, base->hw_ver, base->max_qp, base->max_qp_wr,
	       base->device_cap_flags, base->max_sge, base->max_sge_rd);
	printf(" max_cq %d max_cqe %d max_mr %d max_pd %d rd_atom %d %d %d %d %d atomic %d",
	       base->max_cq, base->max_cqe, base->max_mr, base->max_pd, base->max_qp_rd_atom,
	       base->max_ee_rd_atom, base->max_res_rd_atom, base->max_qp_init_rd_atom,
	       base->max_ee_init_rd_atom, base->atomic_cap);
	printf(" max_ee %d max_rdd %d max_mw %d raw %d %d mcast %d %d %d max_ah %d srq %d %d %d",
	       base->max_ee, base->max_rdd, base->max_mw, base->max_raw_ipv6_qp,
	       base->max_raw_ethy_qp, base->max_mcast_grp, base->max_mcast_qp_attach,
	       base->max_total_mcast_qp_attach, base->max_ah, base->max_srq, base->max_srq_wr,
	       base->max_srq_sge);
	printf(" max_pkeys %u ack_delay %u ports %u", base->max_pkeys, base->local_ca_ack_delay,
	       base->phys_port_cnt);
	printf(" timestamp_mask %" PRIu64 " clock %" PRIu64 " flags_ex %#" PRIx64 " max_dm %" PRIu64 "\n",
	       attr.completion_timestamp_mask, attr.hca_core_clock, attr.device_cap_flags_ex,
	       attr.max_dm_size);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name)) {
			printf("guid %016" PRIx64 "\n", be64toh(ibv_get_device_guid(list[i])));
			errno = 0;
			context = ibv_open_device(list[i]);
			if (!context)
				printf("open: errno %d\n", errno);
		}
	if (list)
		ibv_free_device_list(list);
	return context;
}

static int verbs(const char *name)
{
	struct ibv_context *context = open_device(name);
	struct ibv_device_attr base;

	if (!context)
		return 1;
	if (ibv_query_device(context, &base))
		return 1;
	device(context);
	for (unsigned number = 0; number <= base.phys_port_cnt + 1u; number++) {
		struct ibv_port_attr attr = {};

		port(context, number, &attr);
		/* Two slots beyond the table. */
		for (int index = 0; index < attr.gid_tbl_len + 2; index++)
			gid_entry(context, number, index);
		for (int index = 0; index < attr.pkey_tbl_len + 2; index++)
			pkey(context, number, index);
	}
	gid_entry(context, 1, INT32_MAX);
	gid_entry(context, 1, UINT32_MAX);
	gid_entry(context, UINT32_MAX, 0);
	gid_entry(context, 257, 0);
	static const size_t rooms[] = {0, 1, 2, 3, 255, 256, 2047};
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
		gid_table(context, rooms[i]);
	return ibv_close_device(context) ? 1 : 0;
}

/* Asks when a line comes in, by when the device may have gone. */
static int gone(const char *name)
{
	struct ibv_context *context = open_device(name);
	struct ibv_port_attr attr = {};
	char line[16];

	if (!context)
		return 1;
	printf("open\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	device(context);
	port(context, 1, &attr);
	gid_entry(context, 1, 0);
	gid_entry(context, 9, 0);
	gid_table(context, 256);
	gid_table(context, 0);
	return 0;
}

/* How far every time limit is stretched, for slow machines. */
static unsigned int time_scale(void)
{
	const char *scale = getenv("UVERBS_VM_TIME_SCALE");
	int number = scale ? atoi(scale) : 1;

	return number > 1 ? number : 1;
}

static int events(const char *name, int count)
{
	struct ibv_context *context = open_device(name);

	if (!context)
		return 1;
	/* Whoever waits for an event is not to wait for ever. */
	alarm(60 * time_scale());
	printf("open\n");
	fflush(stdout);
	for (int i = 0; i < count; i++) {
		struct ibv_async_event event;

		if (ibv_get_async_event(context, &event))
			return 1;
		printf("event %d port %d\n", event.event_type, event.element.port_num);
		fflush(stdout);
		ibv_ack_async_event(&event);
	}
	return ibv_close_device(context) ? 1 : 0;
}

static void umad_port_line(const umad_port_t *port)
{
	printf("port %d: ca %s lid %u lmc %u sm_lid %u sm_sl %u state %u phys %u rate %u cap %#x",
	       port->portnum, port->ca_name, port->base_lid, port->lmc, port->sm_lid, port->sm_sl,
	       port->state, port->phys_state, port->rate, be32toh(port->capmask));
	printf(" prefix %016" PRIx64 " guid %016" PRIx64 " link %s pkeys", be64toh(port->gid_prefix),
	       be64toh(port->port_guid), port->link_layer);
	for (unsigned i = 0; i < port->pkeys_size; i++)
		printf(" 0x%04x", port->pkeys[i]);
	printf("\n");
}

static void umad_ca_lines(const char *name)
{
	umad_ca_t ca;
	int status;

	memset(&ca, 0, sizeof(ca));
	status = umad_get_ca(name, &ca);
	printf("ca %s: %d\n", name ? name : "(default)", status);
	if (status)
		return;
	printf("ca %s type %u ports %d fw '%s' type '%s' hw '%s' node %016" PRIx64
	       " system %016" PRIx64 "\n",
	       ca.ca_name, ca.node_type, ca.numports, ca.fw_ver, ca.ca_type, ca.hw_ver,
	       be64toh(ca.node_guid), be64toh(ca.system_guid));
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
		if (ca.ports[i])
			umad_port_line(ca.ports[i]);
	umad_release_ca(&ca);
}

static void umad_port_status(const char *name, int number)
{
	umad_port_t port;
	int status;

	memset(&port, 0, sizeof(port));
	status = umad_get_port(name, number, &port);
	printf("get_port %s %d: %d\n", name ? name : "(default)", number, status);
	if (!status) {
		umad_port_line(&port);
		umad_release_port(&port);
	}
}

static void umad_portguids(const char *name, int room, int have_room)
{
	__be64 guids[16];
	int count;

	memset(guids, 0xab, sizeof(guids));
	count = umad_get_ca_portguids(name, have_room ? guids : NULL, room);
	printf("portguids %s %s %d: %d", name ? name : "(default)", have_room ? "array" : "null", room,
	       count);
	/* All of them, so that a write beyond the count shows. */
	for (int i = 0; have_room && i < 4; i++)
		printf(" %016" PRIx64, be64toh(guids[i]));
	printf("\n");
}

static int umad(char **rooms, int rooms_count)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	const char *known[UMAD_MAX_DEVICES + 3];
	int count, total = 0;

	if (umad_init() < 0)
		return 1;
	count = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	printf("names: %d\n", count);
	for (int i = 0; i < count; i++) {
		printf("name %s\n", names[i]);
		known[total++] = names[i];
	}
	known[total++] = "nosuch0";
	known[total++] = NULL;
	for (int i = 0; i < total; i++) {
		umad_ca_lines(known[i]);
		for (int number = 0; number <= 3; number++)
			umad_port_status(known[i], number);
		for (int j = 0; j < rooms_count; j++) {
			umad_portguids(known[i], atoi(rooms[j]), 1);
			umad_portguids(known[i], atoi(rooms[j]), 0);
		}
	}
	umad_done();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "verbs"))
		return verbs(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "gone"))
		return gone(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "events"))
		return events(argv[2], atoi(argv[3]));
	if (argc >= 2 && !strcmp(argv[1], "umad"))
		return umad(argv + 2, argc - 2);
	fprintf(stderr, "answers verbs DEV | gone DEV | events DEV N | umad ROOM…\n");
	return 2;
}
