package toolbox

import (
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/redact"
)

// looksSecret reports whether a variable looks like a secret: because of its name, or
// because its value is a URL with a password.
func looksSecret(name, value string) bool {
	return urlPassword.MatchString(value) || redact.Name(name)
}

// urlPassword matches a URL that contains a password.
var urlPassword = lazyregexp.New(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:]*:[^\s/?#]+@`)
