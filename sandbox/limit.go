package sandbox

// Limit is a restriction that a sandbox may enforce. Its value is stable.
type Limit string

const (
	// Writes is enforced if nothing outside the writable directories can be created, written,
	// moved, linked or removed.
	Writes Limit = "writes"
	// Truncation is enforced if files outside cannot be truncated.
	Truncation Limit = "truncation"
	// Attributes is enforced if modes, owners, times and extended attributes outside
	// cannot be changed.
	Attributes Limit = "attributes"
	// Protection is enforced if the paths in Policy.Protect cannot be changed, moved or
	// replaced.
	Protection Limit = "protection"
	// Missing is enforced if missing paths in Policy.Protect cannot be created.
	Missing Limit = "missing"
	// Hiding is enforced if the paths in Policy.Hide can be neither read nor
	// changed.
	Hiding Limit = "hiding"
	// Network is enforced if without Policy.Network no machine and no other process can be
	// reached over a network.
	Network Limit = "network"
	// Loopback is enforced if without Policy.Network a program can still connect to itself
	// and to its child processes over the loopback interface.
	Loopback Limit = "loopback"
	// Sockets is enforced if Unix sockets of processes outside that listened when the program
	// was started cannot be reached, unless Policy.Sockets names them.
	Sockets Limit = "sockets"
	// AbstractSockets is enforced if Unix sockets without a file cannot be reached
	// either, even with Policy.Network.
	AbstractSockets Limit = "abstract_sockets"
	// Signals is enforced if processes outside cannot be signalled.
	Signals Limit = "signals"
	// Devices is enforced if devices other than terminals and the like cannot be controlled
	// (ioctl).
	Devices Limit = "devices"
	// Descendants is enforced if ending the process group ends all processes that
	// the program has started, including those in sessions of their own (setsid).
	Descendants Limit = "descendants"
	// Endings is enforced if SIGTERM reaches the program, and the caller sees its real status:
	// its exit code, or the signal that killed it.
	Endings Limit = "endings"
	// Usage is enforced if memory, processes and CPU time cannot exceed Policy.Bounds,
	// whatever processes the program starts, and also after it has ended.
	Usage Limit = "usage"
)

// Limits lists all limits, the most important first.
func Limits() []Limit {
	return []Limit{
		Writes, Truncation, Attributes, Protection, Missing, Hiding, Network, Loopback,
		Sockets, AbstractSockets, Signals, Devices, Descendants, Usage, Endings,
	}
}

// Text describes the limit in a clause.
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
		return "without network nothing can be reached over one"
	case Loopback:
		return "without network the loopback interface still works inside"
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

// limitsOf lists the limits that a kind enforces with the available means.
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

// landlockLimits lists the limits that only Landlock enforces.
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

// The versions of Landlock that introduced the features used here.
const (
	abiRefer    = 2 // moving and linking from directory to directory
	abiTruncate = 3
	abiTCP      = 4
	abiIoctl    = 5
	abiScope    = 6  // abstract sockets and signals
	abiUnix     = 9  // sockets with a file
	abiUDP      = 10 // the system call filter handles the rest of the network
)
