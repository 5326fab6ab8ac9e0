package sandbox

// Limit is a restriction that a sandbox may enforce. Its value is stable.
type Limit string

const (
	// Writes is held if nothing outside the writable directories can be made, written, moved,
	// linked or removed.
	Writes Limit = "writes"
	// Truncation is held if files outside cannot be emptied or cut.
	Truncation Limit = "truncation"
	// Attributes is held if modes, owners, times and extended attributes outside cannot be
	// changed.
	Attributes Limit = "attributes"
	// Protection is held if what Policy.Protect names cannot be changed, moved or replaced.
	Protection Limit = "protection"
	// Missing is held if what Policy.Protect names and is not there cannot be made.
	Missing Limit = "missing"
	// Hiding is held if what Policy.Hide names can be neither read nor changed.
	Hiding Limit = "hiding"
	// Network is held if without Policy.Network no machine and no other process can be reached
	// over a network.
	Network Limit = "network"
	// Loopback is held if without Policy.Network a program can still talk to itself and to
	// what it started, over the loopback interface.
	Loopback Limit = "loopback"
	// Sockets is held if Unix sockets of processes outside that listened when the program was
	// started cannot be reached, unless Policy.Sockets names them.
	Sockets Limit = "sockets"
	// AbstractSockets is held if those without a file cannot be reached either, with
	// Policy.Network too.
	AbstractSockets Limit = "abstract_sockets"
	// Signals is held if processes outside cannot be signalled.
	Signals Limit = "signals"
	// Devices is held if apart from terminals and the like, devices cannot be driven (ioctl).
	Devices Limit = "devices"
	// Descendants is held if ending the process group ends all that the program has
	// started, including its own sessions (setsid).
	Descendants Limit = "descendants"
	// Endings is held if SIGTERM reaches the program, and it is seen to end as it ended: with its
	// exit code, or by the signal that killed it.
	Endings Limit = "endings"
	// Usage is held if memory, processes and CPU time cannot exceed Policy.Bounds, whatever
	// processes the program starts, and after it has ended too.
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
		return "nothing outside the writable directories can be made, written, moved, linked or removed"
	case Truncation:
		return "files outside cannot be emptied or cut"
	case Attributes:
		return "modes, owners and times outside cannot be changed"
	case Protection:
		return "protected files in writable directories cannot be changed, moved or replaced"
	case Missing:
		return "protected files that do not exist cannot be made"
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
		return "devices cannot be driven"
	case Descendants:
		return "ending the program ends all that it has started"
	case Usage:
		return "memory, processes and CPU time are bounded"
	case Endings:
		return "exit codes and signals come through exactly"
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

// The versions of Landlock that brought what is used here.
const (
	abiRefer    = 2 // moving and linking from directory to directory
	abiTruncate = 3
	abiTCP      = 4
	abiIoctl    = 5
	abiScope    = 6  // abstract sockets and signals
	abiUnix     = 9  // sockets with a file
	abiUDP      = 10 // the system call filter handles the rest of the network
)
