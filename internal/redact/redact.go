// Package redact removes secrets from texts that Belay stores. For example, approvals quote
// commands, and commands can contain passwords.
//
// It finds secrets by their form: authorization headers, passwords in URLs, and the keys of
// well-known services. It also finds the values of flags, variables and fields with names
// such as token, password, secret or key. It does not find other secrets.
package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Mark is the text that replaces a secret.
const Mark = "[REDACTED]"

// Text returns a text without its secrets. It may remove more than secrets. Calling it
// again changes nothing.
func Text(text string) string {
	for _, r := range rules() {
		text = r.apply(text)
	}
	return namedValues(text)
}

// rule finds secrets of one form. The expression has two groups: the text before a secret,
// and the secret.
type rule struct {
	find *regexp.Regexp
	// is reports whether a match is a secret. nil means always.
	is func(before, secret string) bool
}

func shape(pattern string, is func(before, secret string) bool) rule {
	return rule{regexp.MustCompile(pattern), is}
}

// edge matches where a word can begin. In JSON a word can follow an escape, such as \n.
const edge = `(?:^|[^A-Za-z0-9_]|\\[abfnrtv])`

// quote matches a quote, which may be escaped, or nothing.
const quote = `(?:\\*["'])?`

// rules has a rule for each form of secret. The rules are compiled at the first use,
// because compiling takes time that most commands do not need.
var rules = sync.OnceValue(func() []rule {
	return []rule{
		shape(`()(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$))`, nil),
		// Headers. After a known scheme the secret is one word. Otherwise it is everything up
		// to a quote.
		shape(`(?i)(authorization`+quote+`\s*[:=]\s*`+quote+`(?:bearer|basic|token|digest|negotiate|ntlm|apikey)\s+)([^\s"'\\]+)`, isLiteral),
		shape(`(?i)(authorization`+quote+`\s*[:=]\s*`+quote+`)([^\r\n"'\\]+)`, isHeader),
		shape(`(?i)(`+edge+`cookie`+quote+`\s*:\s*`+quote+`)([^\r\n"'\\]+)`, isLiteral),
		shape(`(?i)(`+edge+`bearer(?:[\s_-]+token)?(?:\s*[:=]\s*|\s+|%20)`+quote+`)([^\s"'\\]+)`, isLiteral),
		shape(`(?i)(`+edge+`basic(?:\s+|%20))([A-Za-z0-9+/_-]{4,}={0,2})`, isLogin), // needs isLogin, because "basic" is also a common word
		// URLs. The user name is a secret if it is long, or if there is no password. A password
		// ends at the last @ before the path.
		shape(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"'\\:@]{20,})(?::[^\s/?#"'\\]*)?@`, nil),
		shape(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"'\\:@]+):(?:x-oauth-basic)?@`, nil),
		shape(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#"'\\:@]*:)([^\s/?#"'\\]+)@`, nil),
		// -u USER:PASSWORD, a flag of curl.
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
})

// apply replaces all secrets that the rule finds.
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

// isLiteral reports whether a text is the secret itself, and not a reference to a variable.
func isLiteral(_, text string) bool { return !reference.MatchString(text) }

// isHeader reports whether the value of a header has a secret that no other rule has
// replaced.
func isHeader(_, value string) bool {
	words := strings.Fields(value)
	if len(words) > 1 && slices.Contains(plain, strings.ToLower(words[0])) {
		words = words[1:]
	}
	return !strings.Contains(value, Mark) && slices.ContainsFunc(words, func(word string) bool { return isLiteral("", word) })
}

// isLogin reports whether a text is a base64 login of basic authentication.
func isLogin(_, text string) bool {
	text = strings.TrimRight(text, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if login, err := encoding.DecodeString(text); err == nil && strings.Contains(string(login), ":") {
			return true
		}
	}
	return false
}

// notGroup reports whether the value of -u is something other than USER:GROUP in numbers.
func notGroup(before, password string) bool {
	user := strings.TrimSuffix(before, ":")
	return !digits(password) || !digits(user[strings.LastIndexAny(user, "\"', \t=uU")+1:])
}

func digits(text string) bool { return strings.Trim(text, "0123456789") == "" }
