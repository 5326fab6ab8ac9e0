// Package sandbox runs a program so that it can change only the files that a policy
// allows.
//
// The analysis of a command can be wrong about what the command does. A sandbox protects
// even then. A program in a sandbox can change only the directories that its [Policy]
// names. It can read all files except hidden ones. Without a network, it has only a
// private loopback interface. The Linux kernel (Landlock, namespaces) or the program
// bwrap enforces this. On other systems, [Find] reports that there is no sandbox.
//
// # Usage
//
// Landlock restricts a process for the rest of its life. So the restricted process is a
// child, for which this program is started again. This needs one line at the beginning of
// main:
//
//	func main() {
//		sandbox.Main()
//		...
//	}
//
// Without this line, only Bubblewrap works. Call Find once, and use its result to make
// command lines:
//
//	box := sandbox.Find(ctx, nil)
//	argv, err := box.Command(sandbox.Policy{Write: []string{project, tmp}}, []string{"sh", "-c", script})
//
// Start the command line from this process, with the working directory and the
// environment for the program. Of the open files, the program gets only standard input,
// output and error.
//
// [Sandbox.Describe] returns which limits the sandbox enforces. [Sandbox.Holds] reports
// whether it enforces one [Limit]. The kinds of sandboxes differ. In this table, + means
// enforced and - means not enforced. A number is the required version of Landlock.
//
//	                  landlock+namespaces  bubblewrap          landlock
//	writes            +                    +                   +
//	truncation        +                    +                   3 (Linux 6.2)
//	attributes        +                    +                   -
//	protection        +                    + but for links     -
//	missing           +                    -                   -
//	hiding            +                    +                   -
//	network           +                    +                   +
//	loopback          +                    +                   -
//	sockets           +                    +                   9
//	abstract_sockets  6                    - with a network    6 (Linux 6.12)
//	signals           +                    +                   6
//	devices           5                    +                   5 (Linux 6.10)
//	descendants       +                    +                   -
//	usage             +                    with Main           -
//	endings           +                    -                   +
//
// If a sandbox cannot enforce a part of a policy, it enforces the rest. There is one
// exception: Bubblewrap refuses to protect a path with a symbolic link. If you need a
// limit, check it with Holds first.
//
// Bubblewrap has some special behaviour. It fails if a Unix socket that it must hide
// disappears before it starts. On SIGTERM it ends at once and does not pass the signal to
// the program. If a signal killed the program, the exit code is 128 plus the number of
// the signal. Background processes end with the program. In the other kinds of sandboxes,
// background processes continue and stay in the sandbox.
//
// # What it does not prevent
//
//   - Reading files that [Policy].Hide does not name. The program can read all secrets
//     that the user can read. With a network, it can send them anywhere.
//   - With a network: connections to services of this machine on the loopback interface.
//   - Reading a hidden file in another way: by a hard link, by a second mount, or, as
//     root, from the device that has the file.
//   - Use of the disk and of the network. [Policy].Bounds limits memory, processes and
//     CPU time. A program can exceed these limits for a moment. In the kind landlock, a
//     process that leaves its session and its parent at the same time is not counted.
//   - Changing a file outside that has a hard link in a writable directory. The same is
//     true for a protected file that has a second, writable mount.
//   - Changes that a process outside makes. If it replaces or creates a protected or
//     hidden file, running sandboxes can access the new file.
//   - Connections to Unix sockets that begin to listen after the program has started. A
//     socket that an earlier command left in the background counts as outside. Name it in
//     [Policy].Sockets to use it.
//   - In the kind landlock, which has no PID namespace: access to the limits, priorities
//     and shared memory of other processes of the same user, and to the user's other
//     terminals.
//   - In the kind bubblewrap: sockets between a virtual machine and its host. In all
//     kinds: access to the keyrings of the kernel.
//   - Bugs in the kernel.
//
// These things do not work in a sandbox:
//
//   - Programs that gain privileges, such as sudo. Mounting. Making device files. Root
//     keeps only its rights over files, its own processes and low ports.
//   - Key agents (ssh, gpg), unless [Policy].Sockets names their sockets.
//   - In a user namespace, which all users except root need, files of other users look as
//     if they belonged to nobody. ssh then rejects files that its configuration includes.
//   - With landlock on Linux before 5.19: moving or linking files from one directory to
//     another.
//
// # Concurrency
//
// A [Sandbox] is immutable and safe for concurrent use. You can start a command line any
// number of times. Sandboxes that protect the same missing path at the same time share
// one placeholder (an empty directory in its place).
//
// A sandbox of kind [Namespaces] uses three processes. The process that you start stays
// outside. It passes HUP, INT, QUIT, TERM, USR1, USR2, CONT and WINCH to the program's
// process group, and ends with the status of the program. SIGSTOP stops only this outer
// process. If it is killed, the kernel kills all processes inside. The extra start of
// this program takes some milliseconds.
//
// # Errors
//
// [Sandbox.Command] returns [ErrNone] if there is no sandbox, and an error for an invalid
// policy. If the sandbox fails later, the program does not run. Then the exit code is
// 126, or 127 if the program does not exist, and one line on standard error gives the
// reason.
//
// # Testing
//
// In tests of a program that uses this package, TestMain must call [Main] first.
// Options.Kinds selects a kind, so that you can test each kind on one machine.
package sandbox
