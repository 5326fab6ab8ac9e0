package permit

import (
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

func cryptoCommands(t table) {
	t.add("openssl", opensslCommand)
	t.add("gpg gpg2", gpgCommand)
	t.add("age rage", func(c *invoked) {
		o := c.options(c.args, "* o=> output=> r= recipient= R=< recipients-file=< i=< identity=< j=!")
		c.readAll(o.rest)
	})
}

// opensslVerbs are the openssl commands that only process their input, or that
// opensslCommand judges by name. opensslCiphers matches openssl commands that are the
// name of a cipher.
const opensslVerbs = "version help list errstr ciphers dgst md5 sha1 sha224 sha256 sha384 sha512 enc base64 rand prime passwd speed x509 req rsa rsautl ec ecparam dsa dsaparam gendsa genrsa genpkey dhparam pkey pkeyparam pkeyutl " +
	"pkcs7 pkcs8 pkcs12 crl crl2pkcs7 verify asn1parse cms smime nseq spkac info kdf mac sess_id s_client ocsp s_time s_server ca engine"

var opensslCiphers = lazyregexp.New(`^(?:aes|aria|bf|camellia|cast|chacha20|des|des3|rc2|rc4|seed|sm4)[a-z0-9-]*$`)

func opensslCommand(c *invoked) {
	o := c.options(c.args, "*-in=< out=> keyout=> key=< cert=< certfile=< CAfile=< CApath=< CA=< CAkey=< CAserial=> inkey=< sign= verify= signature=< pass= passin= passout= config=! engine=! provider=! provider-path=! "+
		"rand=< writerand=> extfile=< conf=! addext= subj= days= newkey= connect= host= port= servername= showcerts n= hex base64 text noout")
	for _, a := range c.args {
		if file, ok := strings.CutPrefix(a.text, "file:"); ok && a.known { // a path may have the form of a URL
			c.read(literal("/" + strings.TrimLeft(file, "/")))
			c.read(literal(file))
		}
	}
	if verb := word(o.rest, 0); len(o.rest) > 0 && !oneOf(verb, opensslVerbs) && !opensslCiphers.MatchString(verb) {
		c.unknown("Belay does not know what openssl " + shown(verb) + " does")
	}
	switch verb := word(o.rest, 0); verb {
	case "s_client", "ocsp", "s_time":
		c.zone(ZoneMachine, "opens network connections of any kind")
		for _, h := range o.values("connect", "host") {
			c.send(h)
		}
	case "s_server", "ca", "engine":
		c.zone(ZoneMachine, "starts a server or loads code")
	case "":
	default:
		for _, p := range o.values("passin", "passout", "pass") {
			if file, ok := strings.CutPrefix(p.text, "file:"); ok {
				c.read(literal(file))
			}
		}
		for _, a := range o.from(1) {
			if verb == "dgst" || verb == "sha256" || verb == "md5" || verb == "sha1" {
				c.read(a)
			} else {
				c.mayTouch(a)
			}
		}
	}
	if o.has("out", "keyout", "writerand") {
		c.zone(ZoneWorkspace, "")
	}
}

func gpgCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "o=> output=> homedir=! options=! agent-program=! photo-viewer=! keyserver= r= recipient= u= local-user= verify print-md list-keys k K list-secret-keys list-packets show-keys dearmor enarmor keyring=< no-default-keyring "+
		"status-file=> logger-file=> attribute-file=> status-fd= logger-fd= attribute-fd= passphrase-fd= batch yes no-tty q quiet v verbose no-verbose a armor with-colons fingerprint with-fingerprint keyid-format= list-options= "+
		"verify-options= import-options= trust-model= always-trust no-auto-check-trustdb n dry-run with-subkey-fingerprint no-permission-warning version help "+
		"e encrypt s sign c symmetric b detach-sign clear-sign clearsign d decrypt import export export-secret-keys gen-key quick-gen-key full-generate-key edit-key delete-keys recv-keys receive-keys search-keys refresh-keys send-keys")
	switch {
	case o.has("verify", "list-keys", "k", "list-packets", "print-md", "dearmor", "enarmor", "show-keys"):
		c.readAll(o.rest)
		if o.has("o", "output") {
			c.zone(ZoneWorkspace, "")
		}
	case o.has("recv-keys", "receive-keys", "search-keys", "refresh-keys", "send-keys", "keyserver"):
		c.zone(ZoneMachine, "changes the user's keys over the network")
	default:
		c.zone(ZoneMachine, "uses or changes the user's keys")
	}
}
