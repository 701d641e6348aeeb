/*
 * A thread that was cancelled calls a function: the thread ends, during the call or after it, and nothing else does.
 * Each function is called in a process of its own, since what it had open may be lost.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>

static struct ibv_device **list;
static struct ibv_device *device;
static struct ibv_context *context;
static umad_ca_t ca;

/* In no public header of rdma-core's. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* What nobody reads. */
static char text[64], names[2][UMAD_CA_NAME_LEN];
static umad_ca_t other_ca;
static umad_port_t port;
static __be64 guids[4];
static __be16 pkey;
static union ibv_gid gid;
static struct ibv_gid_entry entries[4];
static struct ibv_port_attr port_attr;
static struct ibv_device_attr attr;
static struct ibv_device_attr_ex attr_ex;
static struct ibv_async_event event;

static void get_device_list(void) { ibv_get_device_list(NULL); }
static void read_sysfs_file(void) { ibv_read_sysfs_file("/proc/self", "status", text, sizeof(text)); }
static void import_device(void) { ibv_import_device(STDIN_FILENO); }
static void get_cas_names(void) { umad_get_cas_names(names, 2); }
static void get_ca(void) { umad_get_ca(NULL, &other_ca); }
static void get_ca_with_debug(void)
{
	umad_debug(1);
	umad_get_ca("nosuch0", &other_ca);
}

static void get_port(void) { umad_get_port(NULL, 0, &port); }
static void release_ca(void) { umad_release_ca(&ca); }
static void get_ca_portguids(void) { umad_get_ca_portguids(NULL, guids, 4); }
static void get_ca_device_list(void) { umad_get_ca_device_list(); }
/* Those before this are called on every host. */
static void free_device_list(void) { ibv_free_device_list(list); }
static void is_supported(void) { mlx5dv_is_supported(device); }
static void open_device(void) { ibv_open_device(device); }
static void open_mlx5(void) { mlx5dv_open_device(device, NULL); }
/* Those before this with a device, the others with one that is open. */
static void query_device(void) { ibv_query_device(context, &attr); }
static void query_device_ex(void) { ibv_query_device_ex(context, NULL, &attr_ex); }
static void query_port(void) { ibv_query_port(context, 1, &port_attr); }
static void query_gid(void) { ibv_query_gid(context, 1, 0, &gid); }
static void query_gid_ex(void) { ibv_query_gid_ex(context, 1, 0, entries, 0); }
static void query_gid_table(void) { ibv_query_gid_table(context, entries, 4, 0); }
static void query_pkey(void) { ibv_query_pkey(context, 1, 0, &pkey); }
static void get_async_event(void) { ibv_get_async_event(context, &event); }
static void close_device(void) { ibv_close_device(context); }

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{"ibv_get_device_list", get_device_list},
	{"ibv_read_sysfs_file", read_sysfs_file},
	{"ibv_import_device", import_device},
	{"umad_get_cas_names", get_cas_names},
	{"umad_get_ca", get_ca},
	{"umad_debug", get_ca_with_debug},
	{"umad_get_port", get_port},
	{"umad_release_ca", release_ca},
	{"umad_get_ca_portguids", get_ca_portguids},
	{"umad_get_ca_device_list", get_ca_device_list},
	{"ibv_free_device_list", free_device_list},
	{"mlx5dv_is_supported", is_supported},
	{"ibv_open_device", open_device},
	{"mlx5dv_open_device", open_mlx5},
	{"ibv_query_device", query_device},
	{"ibv_query_device_ex", query_device_ex},
	{"ibv_query_port", query_port},
	{"ibv_query_gid", query_gid},
	{"ibv_query_gid_ex", query_gid_ex},
	{"ibv_query_gid_table", query_gid_table},
	{"ibv_query_pkey", query_pkey},
	{"ibv_get_async_event", get_async_event},
	{"ibv_close_device", close_device},
};

static pthread_barrier_t barrier;

static void *run(void *call)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
	(*(void (*const *)(void))call)();
	pthread_testcancel();
	return NULL;
}

/* 0 if the thread was cancelled and the process goes on. */
static int cancelled(void (*const *call)(void))
{
	pthread_t thread;
	void *result;

	alarm(60);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, run, (void *)call))
		return 2;
	pthread_barrier_wait(&barrier);
	pthread_cancel(thread);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, &result);
	return result != PTHREAD_CANCELED;
}

int main(void)
{
	int failed = 0;

	list = ibv_get_device_list(NULL);
	device = list ? list[0] : NULL;
	context = device ? ibv_open_device(device) : NULL;
	umad_get_ca(NULL, &ca);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		int is_of_device = i >= 10, is_of_context = i >= 14, status;
		pid_t child;

		if ((is_of_device && !device) || (is_of_context && !context)) {
			printf("%s: not called\n", calls[i].name);
			continue;
		}
		fflush(stdout);
		child = fork();
		if (!child) {
			int ends[2];

			/* What is written there may be half of a text. */
			if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
				_exit(3);
			_exit(cancelled(&calls[i].call));
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			return 2;
		printf("%s: %s\n", calls[i].name, status ? "the process ended" : "cancelled");
		failed |= status != 0;
	}
	return failed;
}
