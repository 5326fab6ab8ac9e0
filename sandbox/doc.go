// Package sandbox runs a program so that it can only change the files that a policy allows.
//
// Analysing a command shows what it seems to do; a sandbox protects when the analysis was wrong. A program
// in a sandbox can only change the directories that its [Policy] names, and can read everything except
// hidden files. Without a network it has a private loopback interface. The kernel (Landlock, namespaces) or
// the program bwrap implements it, on Linux only: on other systems [Find] reports that there is none.
//
// # Usage
//
// Landlock restricts a process permanently, so it is applied in a child, which is this program started
// again. That takes one line, before anything else:
//
//	func main() {
//		sandbox.Main()
//		...
//	}
//
// Without this line only Bubblewrap can be used. Call Find once, and make command lines with its result:
//
//	box := sandbox.Find(ctx, nil)
//	argv, err := box.Command(sandbox.Policy{Write: []string{project, tmp}}, []string{"sh", "-c", script})
//
// Start the command line from this process, with the working directory and the environment for the program.
// Nothing else is passed on: open files other than standard input, output and error are closed.
//
// [Sandbox.Describe] returns which limits the sandbox enforces, and [Sandbox.Holds] reports it for one
// [Limit]. The kinds differ: + is enforced, - is not, and a number is the required version of Landlock.
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
// A policy with limits that are not enforced is applied as far as possible, except that Bubblewrap refuses
// to protect a path with a symbolic link. If you need a limit, check it with Holds first.
//
// Bubblewrap fails if a Unix socket that it must hide disappears before it starts. On SIGTERM it ends at
// once, without passing the signal on. If a signal killed the program, the exit code is 128 plus its
// number. Background processes end with it; in the other kinds they continue, as without a sandbox, and
// stay contained.
//
// # What it does not prevent
//
//   - Reading files that [Policy].Hide does not name. Secrets that the user can read, the
//     program can read; with a network it can send them anywhere.
//   - With a network: services of this machine on the loopback interface.
//   - Other ways to a hidden file: a hard link to it, a second mount of it, and for root
//     the device that it is on.
//   - Use of the disk and of the network. Memory, processes and CPU time are bounded by
//     [Policy].Bounds: for a moment more may be used, and with landlock alone a process that
//     leaves its session and its parent at once is not counted.
//   - A hard link from a writable directory to a file elsewhere is that file, and so is
//     a second mount of a protected file that may be written.
//   - Changes that a process outside makes to a protected or hidden file: if it replaces or
//     creates the file, running sandboxes can access it.
//   - Unix sockets that begin to listen after the program has started. One that an
//     earlier command left in the background counts as outside; name it in
//     [Policy].Sockets to use it.
//   - Without a PID namespace, so with landlock: the limits and priorities of processes
//     of the same user, shared memory of theirs, and other terminals of the user.
//   - In bubblewrap: sockets between a virtual machine and its host. In all: the
//     keyrings of the kernel.
//   - Mistakes in the kernel.
//
// And what does not work in it:
//
//   - Programs that gain privileges, sudo among them; mounting; making device files. Root
//     keeps only its rights over files, its own processes and low ports.
//   - Agents for keys (ssh, gpg), unless [Policy].Sockets names them.
//   - In a user namespace, which everybody but root needs, files of others look like
//     nobody's. ssh then rejects the files that its own configuration includes.
//   - With landlock on Linux before 5.19, moving and linking files from directory to
//     directory.
//
// # Concurrency
//
// A [Sandbox] is immutable and safe for concurrent use. A command line may be started any number of times.
// Sandboxes that protect the same missing name at the same time share the placeholder.
//
// A sandbox of kind [Namespaces] is three processes: the one that was started stays outside, passes on HUP,
// INT, QUIT, TERM, USR1, USR2, CONT and WINCH to the program's group, and ends with the status of the
// program; SIGSTOP stops only this process. When it is killed, the kernel kills all processes inside. It
// costs one more start of this program, and some milliseconds.
//
// # Errors
//
// [Sandbox.Command] returns [ErrNone] if there is no sandbox, and an error for an invalid policy. Later
// failures are closed: the program does not run, the exit code is 126 (or 127 if there is no such program),
// and one line on standard error says why.
//
// # Testing
//
// In tests of a program that uses it, TestMain calls [Main] first. Options.Kinds selects one kind, so that
// each kind can be tested on one machine.
package sandbox
