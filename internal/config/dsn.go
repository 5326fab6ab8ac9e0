package config

import (
	"net/url"
	"path/filepath"
	"strings"
)

// IsDSN reports whether a store is a database on a server, by its URL, and not a file.
func IsDSN(store string) bool {
	return strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://")
}

// MaskDSN returns a store for display, without a password. An invalid URL is not
// shown at all.
func MaskDSN(store string) string {
	if !IsDSN(store) {
		return store
	}
	u, err := url.Parse(store)
	if err != nil {
		return "postgres://…"
	}
	if _, ok := u.User.Password(); ok {
		u.User = url.UserPassword(u.User.Username(), maskedPassword)
	}
	query := u.Query()
	for _, key := range []string{"password", "sslpassword"} {
		if query.Has(key) {
			query.Set(key, maskedPassword)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

const maskedPassword = "xxxxx"

// Home returns the directory for files beside the store: the store's directory, or
// the project's if the store is on a server.
func (l *Loaded) Home() string {
	if IsDSN(l.Store) {
		return filepath.Join(l.Project, ".belay")
	}
	return filepath.Dir(l.Store)
}

// located returns a store, with a relative path resolved from a directory.
func located(store, from string) string {
	if IsDSN(store) {
		return store
	}
	return absolute(store, from)
}
