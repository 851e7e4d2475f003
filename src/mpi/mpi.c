/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over MPI: Open MPI or MPICH, whichever this file was compiled with. No collectives but at the start:
 * the order in which they add differs by size and by number of ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "group/transport.h"

_Static_assert(sizeof(MPI_Request) <= TRANSPORT_REQUEST_BYTES, "a request has room");

static int tell(int error, char *message, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (error == MPI_SUCCESS)
        return 0;
    MPI_Error_string(error, text, &length);
    snprintf(message, size, "%s", text);
    return -1;
}

/* Errors come back, and do not end the process: who waits has a time limit. */
static int start(struct transport_place *place, char *message, size_t size)
{
    int provided = 0, error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (tell(error, message, size))
        return -1;
    if (provided < MPI_THREAD_SERIALIZED) {
        snprintf(message, size, "MPI without MPI_THREAD_SERIALIZED");
        return -1;
    }
    MPI_Comm local;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &place->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &place->ranks);
    error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    if (tell(error, message, size))
        return -1;
    MPI_Comm_rank(local, &place->local_rank);
    MPI_Comm_size(local, &place->local_ranks);
    MPI_Comm_free(&local);
    return 0;
}

static int send(const void *data, size_t bytes, int to, int tag, struct transport_request *request)
{
    MPI_Request made;
    const int error = MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &made);
    memcpy(request->bytes, &made, sizeof made);
    return error != MPI_SUCCESS;
}

static int receive(void *data, size_t bytes, int from, int tag, struct transport_request *request)
{
    MPI_Request made;
    const int error = MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &made);
    memcpy(request->bytes, &made, sizeof made);
    return error != MPI_SUCCESS;
}

static int test(struct transport_request *request)
{
    MPI_Request made;
    int done = 0;
    memcpy(&made, request->bytes, sizeof made);
    const int error = MPI_Test(&made, &done, MPI_STATUS_IGNORE);
    memcpy(request->bytes, &made, sizeof made);
    return error == MPI_SUCCESS ? done : -1;
}

static void end(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void finish(void)
{
    MPI_Finalize();
}

__attribute__((visibility("default"))) const struct transport *graphi_transport(void)
{
    static const struct transport mpi = {TRANSPORT_VERSION, "mpi", start, send, receive, test, end, finish};
    return &mpi;
}
