package permit

import "strings"

// cryptoCommands make and use keys.
func cryptoCommands(t table) {
	t.add("openssl", opensslCommand)
	t.add("gpg gpg2", gpgCommand)
	t.add("gpgconf gpg-agent gpg-connect-agent pinentry", at(ZoneMachine, "changes the user's keys"))
	t.add("age rage", func(c *invoked) {
		o := c.options(c.args, "* o=> output=> r= recipient= R=< recipients-file=< i=< identity=< j=!")
		c.readAll(o.rest)
	})
	t.add("age-keygen mkcert certbot acme.sh sops", at(ZoneMachine, "makes or uses keys"))
	t.add("uuidgen pwgen xkcdpass", harmless)
}

func opensslCommand(c *invoked) {
	o := c.options(c.args, "*-in=< out=> keyout=> key=< cert=< certfile=< CAfile=< CApath=< CA=< CAkey=< CAserial=> inkey=< sign= verify= signature=< pass= passin= passout= config=! engine=! provider=! provider-path=! "+
		"rand=< writerand=> extfile=< conf=! addext= subj= days= newkey= connect= host= port= servername= showcerts n= hex base64 text noout")
	switch verb := word(o.rest, 0); verb {
	case "s_client", "ocsp", "s_time":
		c.zone(ZoneMachine, "opens connections of any kind")
		for _, h := range o.values("connect", "host") {
			c.send(h)
		}
	case "s_server", "ca", "engine":
		c.zone(ZoneMachine, "serves, or runs, what it is told")
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
	o := c.options(c.args, "* o=> output=> homedir=! options=! agent-program=! photo-viewer=! keyserver= r= recipient= u= local-user= verify print-md list-keys k list-packets dearmor enarmor keyring=< no-default-keyring")
	switch {
	case o.has("verify", "list-keys", "k", "list-packets", "print-md", "dearmor", "enarmor", "show-keys"):
		c.readAll(o.rest)
		if o.has("o", "output") {
			c.zone(ZoneWorkspace, "")
		}
	case o.has("recv-keys", "receive-keys", "search-keys", "refresh-keys", "send-keys", "keyserver"):
		c.zone(ZoneMachine, "changes the user's keys over the network")
	default:
		c.zone(ZoneMachine, "uses, or changes, the user's keys")
	}
}
