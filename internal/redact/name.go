package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Name reports whether the name of a variable, a flag or a field looks like that of a
// secret: API_KEY, --token, dbPassword.
func Name(name string) bool {
	name = strings.Trim(name, "-_.")
	if slices.Contains(notSecret, strings.ToUpper(name)) {
		return false
	}
	words := strings.FieldsFunc(camel.ReplaceAllString(name, "${1}_${2}"), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	return slices.ContainsFunc(words, func(word string) bool { return secretWord(strings.ToUpper(word)) })
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// notSecret are variables whose names look like secrets but whose values are
// locations. The socket of an ssh agent gives access to keys only on this machine, so
// its path is harmless in a log, and git needs it.
var notSecret = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK"}

// secretWord reports whether a part of a name means a secret, also in the
// plural or with a number: TOKENS, TOKEN2. ASKPASS is a program.
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

// secretEnds are the ends of words for secrets. PAT, a personal access token, must be
// the whole word: COMPAT is not a secret.
var secretEnds = []string{
	"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD",
	"CREDENTIAL", "CRED", "AUTH", "AUTHORIZATION", "COOKIE", "DSN",
}
