package toolbox

import (
	"regexp"

	"github.com/belay-run/belay/internal/redact"
)

// looksSecret reports whether a variable seems to hold a secret: its name says so,
// or its value is a URL with a password in it.
func looksSecret(name, value string) bool {
	return urlPassword.MatchString(value) || redact.Name(name)
}

// urlPassword finds a URL that names a user with a password.
var urlPassword = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:]*:[^\s/?#]+@`)
