package sandbox

// Limit is a restriction that a sandbox may enforce. The values do not change in later
// versions.
type Limit string

const (
	// Writes means that nothing outside the writable directories can be created, written,
	// moved, linked or removed.
	Writes Limit = "writes"
	// Truncation means that files outside cannot be truncated.
	Truncation Limit = "truncation"
	// Attributes means that modes, owners, times and extended attributes outside cannot
	// be changed.
	Attributes Limit = "attributes"
	// Protection means that the paths in Policy.Protect cannot be changed, moved or
	// replaced.
	Protection Limit = "protection"
	// Missing means that missing paths in Policy.Protect cannot be created.
	Missing Limit = "missing"
	// Hiding means that the paths in Policy.Hide cannot be read or changed.
	Hiding Limit = "hiding"
	// Network means that, without Policy.Network, the program cannot reach other machines
	// or other processes over a network.
	Network Limit = "network"
	// Loopback means that, even without Policy.Network, the program can connect to itself
	// and to its child processes over the loopback interface.
	Loopback Limit = "loopback"
	// Sockets means that the program cannot reach Unix sockets of processes outside,
	// unless Policy.Sockets names them. This covers only sockets that already listened
	// when the program started.
	Sockets Limit = "sockets"
	// AbstractSockets means that the program cannot reach Unix sockets that have no file,
	// even with Policy.Network.
	AbstractSockets Limit = "abstract_sockets"
	// Signals means that the program cannot send signals to processes outside.
	Signals Limit = "signals"
	// Devices means that the program cannot control devices (ioctl) except terminals and
	// similar devices.
	Devices Limit = "devices"
	// Descendants means that ending the process group ends all processes that the program
	// has started. This includes processes in sessions of their own (setsid).
	Descendants Limit = "descendants"
	// Endings means that SIGTERM reaches the program, and that the caller gets the
	// program's real status: its exit code, or the signal that killed it.
	Endings Limit = "endings"
	// Usage means that memory, processes and CPU time cannot exceed Policy.Bounds. The
	// bounds cover all processes that the program has started, even after the program has
	// ended.
	Usage Limit = "usage"
)

// Limits returns all limits, the most important first.
func Limits() []Limit {
	return []Limit{
		Writes, Truncation, Attributes, Protection, Missing, Hiding, Network, Loopback,
		Sockets, AbstractSockets, Signals, Devices, Descendants, Usage, Endings,
	}
}

// Text returns a short description of the limit.
func (l Limit) Text() string {
	switch l {
	case Writes:
		return "nothing outside the writable directories can be created, written, moved, linked or removed"
	case Truncation:
		return "files outside cannot be truncated"
	case Attributes:
		return "modes, owners and times outside cannot be changed"
	case Protection:
		return "protected files in writable directories cannot be changed, moved or replaced"
	case Missing:
		return "protected files that do not exist cannot be created"
	case Hiding:
		return "hidden files, such as those that hold keys, cannot be read"
	case Network:
		return "without network access, the program cannot reach other machines or processes over a network"
	case Loopback:
		return "without network access, the program can still use its own loopback interface"
	case Sockets:
		return "Unix sockets of processes outside cannot be reached"
	case AbstractSockets:
		return "abstract Unix sockets outside cannot be reached"
	case Signals:
		return "processes outside cannot be signalled"
	case Devices:
		return "devices cannot be controlled"
	case Descendants:
		return "ending the program ends all processes that it has started"
	case Usage:
		return "memory, processes and CPU time are bounded"
	case Endings:
		return "the caller sees the exact exit code or signal"
	default:
		return string(l)
	}
}

// limitsOf returns the limits that a kind enforces on this machine.
func limitsOf(kind Kind, m means) []Limit {
	switch kind {
	case Namespaces:
		limits := []Limit{
			Writes, Truncation, Attributes, Protection, Missing, Hiding, Network, Loopback,
			Sockets, Signals, Descendants, Usage, Endings,
		}
		return append(limits, landlockLimits(m.abi)...)
	case Landlock:
		limits := []Limit{Writes, Network, Endings}
		if m.abi >= abiTruncate {
			limits = append(limits, Truncation)
		}
		if m.abi >= abiUnix {
			limits = append(limits, Sockets)
		}
		if m.abi >= abiScope {
			limits = append(limits, Signals)
		}
		return append(limits, landlockLimits(m.abi)...)
	case Bubblewrap:
		limits := []Limit{
			Writes, Truncation, Attributes, Protection, Hiding, Network, Loopback,
			Sockets, Signals, Devices, Descendants,
		}
		if m.watch {
			limits = append(limits, Usage)
		}
		return limits
	default:
		return nil
	}
}

// landlockLimits returns the limits that depend on the version of Landlock.
func landlockLimits(abi int) []Limit {
	var limits []Limit
	if abi >= abiScope {
		limits = append(limits, AbstractSockets)
	}
	if abi >= abiIoctl {
		limits = append(limits, Devices)
	}
	return limits
}

// The versions of Landlock that introduced the features that this package uses.
const (
	abiRefer    = 2 // moving and linking between directories
	abiTruncate = 3
	abiTCP      = 4
	abiIoctl    = 5
	abiScope    = 6  // abstract sockets and signals
	abiUnix     = 9  // Unix sockets with a file
	abiUDP      = 10 // UDP sockets; seccomp handles the other protocols
)
