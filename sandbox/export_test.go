package sandbox

// WithABI returns the sandbox as on a kernel with an older version of Landlock.
func (s *Sandbox) WithABI(abi int) *Sandbox {
	older := *s
	older.means.abi = abi
	older.limits = limitsOf(s.kind, older.means)
	return &older
}

// ABI returns its version of Landlock.
func (s *Sandbox) ABI() int { return s.means.abi }

// UsesUsers reports whether it makes a user namespace.
func (s *Sandbox) UsesUsers() bool { return s.means.users }

// Marker is the first argument of a child that applies a policy.
const Marker = marker
