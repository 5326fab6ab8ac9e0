// Package redact removes secrets from texts that are stored: approvals quote commands,
// and commands can contain passwords.
//
// Secrets are found by their shape and by their name: authorization headers, passwords
// in URLs, the keys of well-known services, and the values of flags, variables and
// fields that are called token, password, secret, key or the like. Other secrets are
// not found.
package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// Mark replaces a secret.
const Mark = "[REDACTED]"

// Text returns a text without its secrets. It can remove more than secrets. A
// second call changes nothing.
func Text(text string) string {
	for i := range rules {
		text = rules[i].apply(text)
	}
	return namedValues(text)
}

// rule finds secrets of one shape. Its groups are the text before a secret, and the
// secret.
type rule struct {
	find *regexp.Regexp
	// is reports whether it is a secret; nil means always.
	is func(before, secret string) bool
}

func shape(pattern string, is func(before, secret string) bool) rule {
	return rule{regexp.MustCompile(pattern), is}
}

// edge is where a word can begin. In JSON it can follow the letter of an escape: \n.
const edge = `(?:^|[^A-Za-z0-9_]|\\[abfnrtv])`

// quote is a quote, possibly escaped, or nothing.
const quote = `(?:\\*["'])?`

var rules = []rule{
	shape(`()(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$))`, nil),
	// Headers. After a known scheme comes one word; otherwise everything up to a quote is
	// the secret.
	shape(`(?i)(authorization`+quote+`\s*[:=]\s*`+quote+`(?:bearer|basic|token|digest|negotiate|ntlm|apikey)\s+)([^\s"'\\]+)`, isLiteral),
	shape(`(?i)(authorization`+quote+`\s*[:=]\s*`+quote+`)([^\r\n"'\\]+)`, isHeader),
	shape(`(?i)(`+edge+`cookie`+quote+`\s*:\s*`+quote+`)([^\r\n"'\\]+)`, isLiteral),
	shape(`(?i)(`+edge+`bearer(?:[\s_-]+token)?(?:\s*[:=]\s*|\s+|%20)`+quote+`)([^\s"'\\]+)`, isLiteral),
	shape(`(?i)(`+edge+`basic(?:\s+|%20))([A-Za-z0-9+/_-]{4,}={0,2})`, isLogin), // it is also a common word
	// The user of a URL is a key if it is long or if there is no password. The password
	// ends at the last @ before the path.
	shape(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"'\\:@]{20,})(?::[^\s/?#"'\\]*)?@`, nil),
	shape(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"'\\:@]+):(?:x-oauth-basic)?@`, nil),
	shape(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#"'\\:@]*:)([^\s/?#"'\\]+)@`, nil),
	// -u USER:PASSWORD, as for curl.
	shape(`(`+edge+`(?:--(?:proxy-)?user(?:=|`+quote+`[\s,]+)|-[uU](?:`+quote+`[\s,]+)?)`+quote+`[^\s:"'@/\\]+:)([^\s"'\\]+)`, notGroup),
	shape(`(`+edge+`)(`+strings.Join([]string{
		`sk-[A-Za-z0-9_-]{8,}`, `[rsp]k_(?:live|test)_[A-Za-z0-9]{8,}`,
		`gh[opsur]_[A-Za-z0-9]{8,}`, `github_pat_[A-Za-z0-9_]{8,}`, `glpat-[A-Za-z0-9_-]{8,}`,
		`A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{12,}`, `AIza[A-Za-z0-9_-]{20,}`, `ya29\.[A-Za-z0-9_-]{8,}`,
		`xox[a-z](?:\.[a-z]+)?-[A-Za-z0-9-]{8,}`, `xapp-[A-Za-z0-9-]{8,}`,
		`eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]+){1,4}`,
		`npm_[A-Za-z0-9]{16,}`, `pypi-[A-Za-z0-9_-]{16,}`, `hf_[A-Za-z0-9]{16,}`, `SG\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, `dop_v1_[a-f0-9]{16,}`,
	}, "|")+`)`, nil),
}

// apply replaces the matches of the rule.
func (r *rule) apply(text string) string {
	found := r.find.FindAllStringSubmatchIndex(text, -1)
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	end := 0
	for _, at := range found {
		before, secret := text[at[2]:at[3]], text[at[4]:at[5]]
		if r.is != nil && !r.is(before, secret) {
			continue
		}
		b.WriteString(text[end:at[4]])
		b.WriteString(Mark)
		end = at[5]
	}
	b.WriteString(text[end:])
	return b.String()
}

// isLiteral reports whether a text is a secret itself, and not the name of a variable.
func isLiteral(_, text string) bool { return !reference.MatchString(text) }

// isHeader reports whether the value of a header is a secret that no other rule has
// found.
func isHeader(_, value string) bool {
	words := strings.Fields(value)
	if len(words) > 1 && slices.Contains(plain, strings.ToLower(words[0])) {
		words = words[1:]
	}
	return !strings.Contains(value, Mark) && slices.ContainsFunc(words, func(word string) bool { return isLiteral("", word) })
}

// isLogin reports whether a text is the login of basic authentication.
func isLogin(_, text string) bool {
	text = strings.TrimRight(text, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if login, err := encoding.DecodeString(text); err == nil && strings.Contains(string(login), ":") {
			return true
		}
	}
	return false
}

// notGroup reports whether -u is not followed by the numbers of a user and a group.
func notGroup(before, password string) bool {
	user := strings.TrimSuffix(before, ":")
	return !digits(password) || !digits(user[strings.LastIndexAny(user, "\"', \t=uU")+1:])
}

func digits(text string) bool { return strings.Trim(text, "0123456789") == "" }
