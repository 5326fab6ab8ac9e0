package redact

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// Name reports whether the name of a variable, a flag or a field looks like the name of a
// secret, such as API_KEY, --token or dbPassword.
func Name(name string) bool {
	name = strings.Trim(name, "-_.")
	if slices.Contains(notSecret, strings.ToUpper(name)) {
		return false
	}
	words := strings.FieldsFunc(camel.ReplaceAllString(name, "${1}_${2}"), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	return slices.ContainsFunc(words, func(word string) bool { return secretWord(strings.ToUpper(word)) })
}

var camel = lazyregexp.New(`([a-z0-9])([A-Z])`)

// notSecret are variables whose names look like secrets, but whose values are paths.
// SSH_AUTH_SOCK is the socket of an SSH agent. It gives access to keys only on this
// machine, so its path is harmless in a log, and git needs the variable.
var notSecret = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK"}

// secretWord reports whether a part of a name means a secret. The part may be a plural or
// have a number, such as TOKENS or TOKEN2. ASKPASS names a program and is not a secret.
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

// secretEnds are the ends of words that mean a secret. PAT (personal access token) is not
// in this list, because it must be the whole word: COMPAT is not a secret.
var secretEnds = []string{
	"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD",
	"CREDENTIAL", "CRED", "AUTH", "AUTHORIZATION", "COOKIE", "DSN",
}
