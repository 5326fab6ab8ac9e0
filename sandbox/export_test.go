package sandbox

// WithABI is the sandbox as it would be on a kernel that speaks an older version of
// Landlock.
func (s *Sandbox) WithABI(abi int) *Sandbox {
	older := *s
	older.means.abi = abi
	older.limits = limitsOf(s.kind, older.means)
	return &older
}

// ABI is the version of Landlock that it uses.
func (s *Sandbox) ABI() int { return s.means.abi }

// UsesUsers reports whether it makes a user namespace.
func (s *Sandbox) UsesUsers() bool { return s.means.users }

// Marker begins the arguments of a child that is to apply a policy.
const Marker = marker
