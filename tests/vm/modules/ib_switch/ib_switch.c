// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * An InfiniBand switch that switches nothing, for the tests of uverbs: while this module is
 * loaded there is a device "switch0" of node type switch, whose only port is number 0. No driver
 * of Linux registers one, and port 0 is valid on no other device.
 *
 * It can be asked and does nothing else: no queue pairs, no memory, no MADs. So its port claims
 * only the InfiniBand protocol, and none of the capabilities (MAD, SMI, CM, SA) that would make the
 * kernel's own users send through it.
 *
 * To user space its driver is soft RoCE, whose libibverbs provider asks for nothing of its own:
 * so rdma-core opens it, and its answers can be compared.
 *
 * src/guest/scenarios/switch.rs says what the tests expect of the numbers below. The parameter "change" changes
 * some of them, and raises the event that a driver would:
 *
 *   lid N           LID N, and LID mask control N mod 3
 *   sm N            LID N of the subnet manager, with service level N mod 4
 *   pkey N          the second P_Key
 *   gid I LOW       the GID at index I, by the last part of its interface id; 0 empties the slot
 *   state N         logical state: 1 down, 4 active
 *   reregister      nothing but the event
 */
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

/* How many ports it switches between. None of them can be asked: only port 0 can. */
#define EXTERNAL_PORTS 36

#define NODE_GUID 0x0200c0fffe000100ULL
#define SYSTEM_GUID 0x0200c0fffe000103ULL
#define PORT_GUID 0x0200c0fffe000140ULL

#define GID_SLOTS 4
#define PKEY_SLOTS 2

/* The first and the third slot are taken. */
static struct {
	u64 prefix, interface_id;
} gids[GID_SLOTS] = {
	[0] = { 0xfe80000000000000ULL, PORT_GUID },
	[2] = { 0xfec0000000000007ULL, 0x0200c0fffe000177ULL },
};

static u16 pkeys[PKEY_SLOTS] = { 0xffff, 0x8123 };

static u16 lid = 11, sm_lid = 3;
static u8 lmc = 1, sm_sl = 2;
static enum ib_port_state state = IB_PORT_ACTIVE;

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 13, 0)
typedef u8 port_number;
#else
typedef u32 port_number;
#endif

struct ib_switch {
	struct ib_device device;
};

struct ib_switch_context {
	struct ib_ucontext context;
};

static struct platform_device *parent;
static struct ib_switch *the_switch;

static int query_device(struct ib_device *device, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	*attr = (struct ib_device_attr){
		.fw_ver = 0x0001000200000003ULL,
		.sys_image_guid = cpu_to_be64(SYSTEM_GUID),
		.vendor_id = 0x0200c0,
		.vendor_part_id = 7,
		.hw_ver = 1,
		.max_pkeys = PKEY_SLOTS,
	};
	return 0;
}

static void get_dev_fw_str(struct ib_device *device, char *text)
{
	strscpy(text, "1.2.3", IB_FW_VERSION_NAME_MAX);
}

static int query_port(struct ib_device *device, port_number port, struct ib_port_attr *attr)
{
	/* Not only the kernel may ask for what does not exist. */
	if (port != 0)
		return -EINVAL;
	attr->state = state;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_2048;
	attr->gid_tbl_len = GID_SLOTS;
	attr->pkey_tbl_len = PKEY_SLOTS;
	attr->port_cap_flags = IB_UVERBS_PCF_SYS_IMAGE_GUID_SUP | IB_UVERBS_PCF_NOTICE_SUP;
	attr->max_msg_sz = 1 << 20;
	attr->bad_pkey_cntr = 5;
	attr->qkey_viol_cntr = 6;
	attr->lid = lid;
	attr->sm_lid = sm_lid;
	attr->sm_sl = sm_sl;
	attr->lmc = lmc;
	attr->max_vl_num = 4;
	attr->subnet_timeout = 18;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	attr->phys_state = state == IB_PORT_ACTIVE ? IB_PORT_PHYS_STATE_LINK_UP :
						     IB_PORT_PHYS_STATE_POLLING;
	return 0;
}

static int get_port_immutable(struct ib_device *device, port_number port,
			      struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = GID_SLOTS;
	immutable->pkey_tbl_len = PKEY_SLOTS;
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	return 0;
}

static int query_gid(struct ib_device *device, port_number port, int index, union ib_gid *gid)
{
	if (port != 0 || index < 0 || index >= GID_SLOTS)
		return -EINVAL;
	gid->global.subnet_prefix = cpu_to_be64(gids[index].prefix);
	gid->global.interface_id = cpu_to_be64(gids[index].interface_id);
	return 0;
}

static int query_pkey(struct ib_device *device, port_number port, u16 index, u16 *pkey)
{
	if (port != 0 || index >= PKEY_SLOTS)
		return -EINVAL;
	*pkey = pkeys[index];
	return 0;
}

static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void dealloc_ucontext(struct ib_ucontext *context)
{
}

/* With it a device can be removed while it is open. Nothing of a context is mapped that would have to go. */
static void disassociate_ucontext(struct ib_ucontext *context)
{
}

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = 2, /* soft RoCE's */

	.query_device = query_device,
	.get_dev_fw_str = get_dev_fw_str,
	.query_port = query_port,
	.get_port_immutable = get_port_immutable,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.disassociate_ucontext = disassociate_ucontext,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, ib_switch_context, context),
};

static int change(const char *text, const struct kernel_param *parameter)
{
	unsigned int number, index;
	struct ib_event event = {};

	if (!the_switch)
		return -ENODEV;
	if (sscanf(text, "lid %u", &number) == 1) {
		lid = number;
		lmc = number % 3;
		event.event = IB_EVENT_LID_CHANGE;
	} else if (sscanf(text, "sm %u", &number) == 1) {
		sm_lid = number;
		sm_sl = number % 4;
		event.event = IB_EVENT_SM_CHANGE;
	} else if (sscanf(text, "pkey %u", &number) == 1) {
		pkeys[1] = number;
		event.event = IB_EVENT_PKEY_CHANGE;
	} else if (sscanf(text, "gid %u %u", &index, &number) == 2 && index < GID_SLOTS) {
		gids[index].prefix = number ? 0xfec0000000000007ULL : 0;
		gids[index].interface_id = number ? 0x0200c0fffe000100ULL + number : 0;
		event.event = IB_EVENT_GID_CHANGE;
	} else if (sscanf(text, "state %u", &number) == 1) {
		state = number;
		event.event = state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	} else if (sysfs_streq(text, "reregister")) {
		event.event = IB_EVENT_CLIENT_REREGISTER;
	} else {
		return -EINVAL;
	}
	event.device = &the_switch->device;
	event.element.port_num = 0;
	ib_dispatch_event(&event);
	return 0;
}

static const struct kernel_param_ops change_ops = { .set = change };
module_param_cb(change, &change_ops, NULL, 0200);

static int __init ib_switch_init(void)
{
	struct ib_device *device;
	int error;

	/* Up to 5.10 the core wants a device that could do DMA. */
	parent = platform_device_register_simple("ib_switch", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);

	error = -ENOMEM;
	the_switch = ib_alloc_device(ib_switch, device);
	if (!the_switch)
		goto no_device;
	device = &the_switch->device;
	device->node_type = RDMA_NODE_IB_SWITCH;
	device->is_switch = 1;
	device->phys_port_cnt = EXTERNAL_PORTS;
	device->num_comp_vectors = 1;
	device->node_guid = cpu_to_be64(NODE_GUID);
	device->dev.parent = &parent->dev;
	strscpy(device->node_desc, "a switch of the uverbs tests", sizeof(device->node_desc));
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
	/* Newer ones take it from the operations. */
	device->uverbs_cmd_mask = BIT_ULL(IB_USER_VERBS_CMD_GET_CONTEXT) |
				  BIT_ULL(IB_USER_VERBS_CMD_QUERY_DEVICE) |
				  BIT_ULL(IB_USER_VERBS_CMD_QUERY_PORT);
#endif
	ib_set_device_ops(device, &ops);

	error = ib_register_device(device, "switch0", &parent->dev);
	if (!error)
		return 0;

	ib_dealloc_device(device);
	the_switch = NULL;
no_device:
	platform_device_unregister(parent);
	return error;
}

static void __exit ib_switch_exit(void)
{
	ib_unregister_device(&the_switch->device);
	ib_dealloc_device(&the_switch->device);
	platform_device_unregister(parent);
}

module_init(ib_switch_init);
module_exit(ib_switch_exit);

MODULE_DESCRIPTION("An InfiniBand switch that switches nothing, for tests");
MODULE_LICENSE("Dual MIT/GPL");
