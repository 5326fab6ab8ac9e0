package toolbox

import (
	"regexp"
	"slices"
	"strings"
)

// looksSecret reports whether a variable seems to hold a secret: its name says so,
// or its value is a URL with a password in it.
func looksSecret(name, value string) bool {
	name = strings.ToUpper(name)
	if urlPassword.MatchString(value) {
		return true
	}
	if slices.Contains(notSecret, name) {
		return false
	}
	return slices.ContainsFunc(strings.Split(name, "_"), secretWord)
}

// notSecret are variables whose names look like secrets and that say where something
// is. The name of an ssh agent's socket is worth nothing in a log, since it gives the
// use of keys on this machine only and no key, and git needs it.
var notSecret = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK"}

// secretWord reports whether a part of a name stands for a secret, be it in the
// plural or numbered: TOKENS, TOKEN2. ASKPASS is a program.
func secretWord(word string) bool {
	if word == "ASKPASS" {
		return false
	}
	word = strings.TrimRight(word, "0123456789")
	for _, word := range []string{word, strings.TrimSuffix(word, "S")} {
		if word == "PAT" || slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(word, end) }) {
			return true
		}
	}
	return false
}

// secretEnds are what words for secrets end in. PAT, a personal access token, must be
// the whole word: COMPAT is none.
var secretEnds = []string{
	"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD",
	"CREDENTIAL", "CRED", "AUTH", "AUTHORIZATION", "COOKIE", "DSN",
}

// urlPassword finds a URL that names a user with a password.
var urlPassword = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:]*:[^\s/?#]+@`)
