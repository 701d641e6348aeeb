/*
 * find LIBRARY [NAME VERSION]…
 *
 * Looks each name up in a shared library as programs do that load libibverbs by themselves.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int missing = 0;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	for (int i = 2; i + 1 < argc; i += 2) {
		if (!dlvsym(library, argv[i], argv[i + 1])) {
			fprintf(stderr, "no %s of version %s\n", argv[i], argv[i + 1]);
			missing = 1;
		}
	}
	return missing;
}
