// Package sandbox runs a program so that it can change only what it may.
//
// Reading a command tells what it seems to do; a sandbox is what holds when that was
// wrong. A program in one can change nothing but the directories that its [Policy]
// names, and read everything but what that hides. Without a network it has the loopback
// interface to itself. It is made by the kernel (Landlock, namespaces) or by the
// program bwrap, on Linux alone: elsewhere [Find] says that there is none.
//
// # Usage
//
// Landlock restricts a process for good, and so it is applied in a child, which is
// this program started again. That takes one line, before anything else:
//
//	func main() {
//		sandbox.Main()
//		...
//	}
//
// A program that lacks it is not started again: then there is Bubblewrap, or nothing.
// Look once at what the machine can do, and make command lines with what was found:
//
//	box := sandbox.Find(ctx, nil)
//	argv, err := box.Command(sandbox.Policy{Write: []string{project, tmp}}, []string{"sh", "-c", script})
//
// The command line is for this process to start, with the working directory and the
// environment that the program is to have. Nothing else is passed on: open files
// other than standard input, output and error are closed.
//
// [Sandbox.Describe] tells what the machine's sandbox holds and what not, and
// [Sandbox.Holds] tells it of one [Limit]. The kinds differ: what is + is held, what
// is - is not, and a number is the version of Landlock that it takes.
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
// A policy that asks for what is not held is applied as far as it can be, except that
// Bubblewrap refuses to protect what is reached through a symbolic link. Whoever needs
// a limit asks for it before.
//
// Bubblewrap fails if a Unix socket that it is to hide is gone by the time it starts. It
// ends at once where others are asked to end, a signal that killed the
// program is exit code 128 and its number, and what the program left in the background
// ends with it. Otherwise that goes on, as it does without a sandbox, and is still
// contained.
//
// # What it does not hold
//
//   - Reading what [Policy].Hide does not name. Secrets that the user can read, the
//     program can read; with a network it can send them anywhere.
//   - With a network: services of this machine on the loopback interface.
//   - Other ways to a hidden file: a hard link to it, a second mount of it, and for root
//     the device that it is on.
//   - Use of the disk and of the network. Memory, processes and CPU time are bounded by
//     [Policy].Bounds: for a moment more may be used, and with landlock alone a process that
//     leaves its session and its parent at once is not counted.
//   - A hard link from a writable directory to a file elsewhere is that file, and so is
//     a second mount of a protected file that may be written.
//   - What a process outside does to a protected or hidden file: replacing it uncovers it
//     in sandboxes that are under way, and so does making one that was missing.
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
//     nobody's. ssh takes that amiss in the files that its own configuration includes.
//   - With landlock on Linux before 5.19, moving and linking files from directory to
//     directory.
//
// # Concurrency
//
// A [Sandbox] is immutable and safe for concurrent use. A command line may be started any
// number of times. Sandboxes that protect the same missing name at the same time share
// what stands in its place.
//
// A sandbox of kind [Namespaces] is three processes: the one that was started stays
// outside, passes on HUP, INT, QUIT, TERM, USR1, USR2, CONT and WINCH to the program's group, and
// ends as the program ends; SIGSTOP stops it alone. When it is killed the kernel kills all within. It costs
// one more start of this program, and some milliseconds.
//
// # Errors
//
// [Sandbox.Command] returns [ErrNone] where there is no sandbox, and says what is wrong
// with a policy. What fails later fails closed: the program does not run, the exit code
// is 126 (or 127 if there is no such program), and one line on standard error says why.
//
// # Testing
//
// In tests of a program that uses it, TestMain calls [Main] first. Options.Kinds asks for one
// kind, so that each can be tried on one machine.
package sandbox
