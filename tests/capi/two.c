/* A program with two static libraries that were written in Rust. */
#include <stdio.h>

#include <uverbs.h>

int other_arguments(void);

int main(void)
{
	printf("%d %s\n", other_arguments(), ibv_get_sysfs_path());
	return umad_init();
}
