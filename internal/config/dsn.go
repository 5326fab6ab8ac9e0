package config

import (
	"net/url"
	"path/filepath"
	"strings"
)

// IsDSN reports whether a store is the URL of a database, and not a file.
func IsDSN(store string) bool {
	return strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://")
}

// MaskDSN returns the name of a store without its password, for display. It does not show
// an invalid URL at all.
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

// hasPassword reports whether a store is a URL with a password.
func hasPassword(store string) bool {
	return IsDSN(store) && strings.Contains(MaskDSN(store), maskedPassword)
}

// PasswordFiles returns the settings files that contain the password of a database.
func (l *Loaded) PasswordFiles() []string { return l.passwordFiles }

const maskedPassword = "xxxxx"

// Home returns the directory for files that belong to the store: the directory of the
// store's file, or .belay in the project if the store is a database.
func (l *Loaded) Home() string {
	if IsDSN(l.Store) {
		return filepath.Join(l.Project, ".belay")
	}
	return filepath.Dir(l.Store)
}

// located returns a store. A relative path starts at the directory from.
func located(store, from string) string {
	if IsDSN(store) {
		return store
	}
	return absolute(store, from)
}
