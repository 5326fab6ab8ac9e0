package sandbox

// WithABI returns the sandbox as it would be on a kernel with an older version of
// Landlock.
func (s *Sandbox) WithABI(abi int) *Sandbox {
	older := *s
	older.means.abi = abi
	older.limits = limitsOf(s.kind, older.means)
	return &older
}

// ABI returns the version of Landlock that the sandbox uses.
func (s *Sandbox) ABI() int { return s.means.abi }

// UsesUsers reports whether the sandbox makes a user namespace.
func (s *Sandbox) UsesUsers() bool { return s.means.users }

// Marker is the first argument of a child that applies a policy.
const Marker = marker
