package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Name reports whether a variable, a flag or a field is called like a secret: API_KEY,
// --token, dbPassword.
func Name(name string) bool {
	name = strings.Trim(name, "-_.")
	if slices.Contains(notSecret, strings.ToUpper(name)) {
		return false
	}
	words := strings.FieldsFunc(camel.ReplaceAllString(name, "${1}_${2}"), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	return slices.ContainsFunc(words, func(word string) bool { return secretWord(strings.ToUpper(word)) })
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

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
