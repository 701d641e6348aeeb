/*
 * The structure around a context, a line for each field that the library has, as layouts.c prints them: from
 * the field on with which the library's begins. Only rdma-core's headers declare it; inline code finds
 * functions in it by distances from its end, for newer releases begin it earlier.
 */
#include <stddef.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#define FROM(field) (offsetof(struct verbs_context, field) - offsetof(struct verbs_context, query_port))
#define FIELD(field) printf("struct verbs_context.%s: offset %zu\n", #field, FROM(field))

int main(void)
{
	printf("struct verbs_context: size %zu\n", FROM(context) + sizeof(struct ibv_context));
	FIELD(query_port);
	FIELD(priv);
	FIELD(query_device_ex);
	FIELD(_ABI_placeholder3);
	FIELD(sz);
	FIELD(context);
	return 0;
}
