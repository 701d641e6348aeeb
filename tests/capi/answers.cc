// uverbs.h in C++: the functions of the four man pages, called and linked.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <uverbs.h>

namespace {

struct Close {
	void operator()(ibv_context *context) const { ibv_close_device(context); }
};

void answers(ibv_context *context)
{
	ibv_gid_entry entry;
	int error = ibv_query_gid_ex(context, 1, 0, &entry, 0);
	std::printf("gid: %s\n", std::strerror(error));

	std::vector<ibv_gid_entry> entries(1024);
	ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
	std::printf("gids: %zd\n", count);

	mlx5dv_port port;
	error = mlx5dv_query_port(context, 1, &port);
	std::printf("mlx5 port: %s\n", std::strerror(error));

	ibv_port_attr attr;
	error = ibv_query_port(context, 1, &attr);
	std::printf("port: %s, %s\n", std::strerror(error), ibv_port_state_str(attr.state));
}

} // namespace

int main()
{
	__be64 guids[UMAD_CA_MAX_PORTS];
	std::printf("port GUIDs: %d\n", umad_get_ca_portguids(nullptr, guids, UMAD_CA_MAX_PORTS));

	ibv_device **list = ibv_get_device_list(nullptr);
	if (!list) {
		std::fprintf(stderr, "listing RDMA devices: %s\n", std::strerror(errno));
		return 1;
	}
	int opened = 0;
	for (ibv_device **device = list; *device; ++device) {
		std::unique_ptr<ibv_context, Close> context(ibv_open_device(*device));
		if (context) {
			answers(context.get());
			++opened;
		}
	}
	ibv_free_device_list(list);
	if (!opened)
		std::fprintf(stderr, "no RDMA device could be opened\n");
	return opened ? 0 : 1;
}
