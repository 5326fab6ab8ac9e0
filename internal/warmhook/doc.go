// Package warmhook lets "belay hook" answer in a few milliseconds. A worker process keeps
// the hooks, the floor and the store of a directory open. The command connects to the
// worker, sends the event, and prints the answer. If there is no worker, or anything about
// it is odd, the command answers by itself.
//
// The command must connect before the rest of the program is initialized: a Go program
// initializes every package that it contains before main, and for Belay this takes longer
// than the answer. So this package imports only os, io and syscall, and package early calls
// [Begin] when it is initialized.
//
// # Trust
//
// The socket is in a directory that only the user can enter. The command checks the owner
// and the mode of the directory. On Linux, both sides also check the user of the other
// process, and the command checks that the process which made the socket runs the same
// program. This stops a simple imitation of the worker. It does not stop a program of the same
// user that sets out to deceive: such a program can also change the agent or its settings.
// On other systems there is no such check, so the command uses no worker. If someone ends the
// worker, the command answers by itself.
package warmhook
