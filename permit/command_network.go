package permit

import "strings"

// networkCommands connect to other machines without a login.
func networkCommands(t table) {
	t.add("ping ping6 fping traceroute tracepath mtr nslookup host whois resolvectl", lookupCommand)
	t.add("dig kdig drill delv", digCommand)
	t.add("nc ncat netcat socat telnet ftp tftp lftp nmap masscan zmap tcpdump tshark ngrep mitmproxy mitmdump ngrok cloudflared localtunnel lt chisel frpc", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		c.zone(ZoneMachine, "opens network connections of any kind")
		for _, a := range c.args {
			if kind, rest, ok := strings.Cut(a.text, ":"); ok && a.known && c.name == "socat" {
				c.socket(strings.ToUpper(kind), rest)
			}
		}
		o := parseOptions(c.args, "* e= c= exec= sh-exec=")
		if c.name == "nc" || c.name == "ncat" || c.name == "netcat" {
			for _, text := range o.values("e", "c", "exec", "sh-exec") {
				c.child(text)
			}
		}
		for _, a := range o.rest {
			if a.known && !isNumber(a.text) && c.name != "socat" && !strings.Contains(a.text, "/") {
				c.send(a)
			}
		}
	})
	t.add("wscat websocat grpcurl", func(c *invoked) {
		o := c.options(c.args, "* d= H= proto=< import-path=< protoset=< c= x=!")
		c.zone(ZoneExternal, "exchanges data with another machine")
		if len(o.rest) > 0 {
			c.send(o.rest[0])
		}
	})
	t.add("ab wrk hey vegeta siege k6 locust", func(c *invoked) {
		c.known(c.args)
		c.zone(ZoneExternal, "floods another machine with requests")
		c.denyMetadata(c.args)
	})
}

// socket judges an address of socat: a machine to connect to, or a command to run.
func (c *invoked) socket(kind, rest string) {
	where, _, _ := strings.Cut(rest, ",")
	switch {
	case oneOf(kind, "EXEC SYSTEM SHELL"):
		c.child(literal(where))
	case strings.Contains(kind, "LISTEN") || strings.Contains(kind, "RECV") || oneOf(kind, "FILE OPEN GOPEN CREATE PIPE FD UNIX UNIX-CONNECT UNIX-CLIENT UNIX-SENDTO"):
	default: // TCP:host:port, OPENSSL:host:port, SOCKS4:server:host:port, …
		for host := range strings.SplitSeq(strings.NewReplacer("[", "", "]", "").Replace(where), ":") {
			c.denyMetadata([]arg{literal(host)})
		}
		c.denyMetadata([]arg{literal(where)})
	}
}

// denyMetadata adds a finding for each word that is a metadata service. Such a service
// gives out the credentials of the machine. denyMetadata does not judge other addresses.
func (c *invoked) denyMetadata(words []arg) {
	for _, w := range words {
		if !w.known || w.text == "" || isNumber(w.text) {
			continue
		}
		if f := urlFinding(w.text, ZoneNetwork); f.Protection == netMetadata {
			c.add(f)
		}
	}
}

// lookupCommand judges programs that query the network about hosts.
func lookupCommand(c *invoked) {
	o := c.options(c.args, "* c= i= w= W= s= t= I= m= q= p= h= M= f= z= l= timeout= a n N=")
	c.zone(ZoneNetwork, "uses the network")
	for _, a := range o.rest {
		if c.name == "ping" || c.name == "ping6" || c.name == "fping" || c.name == "traceroute" || c.name == "mtr" {
			c.fetch(a)
		}
	}
}

func digCommand(c *invoked) {
	c.known(c.args)
	c.zone(ZoneNetwork, "looks up names on the network")
	for i, a := range c.args {
		switch server, ok := strings.CutPrefix(a.text, "@"); {
		case ok:
			c.fetch(arg{text: server, known: a.known})
		case i > 0 && oneOf(word(c.args, i-1), "-f -k"):
			c.read(a)
		}
	}
}

// remoteCommands log in to other machines.
func remoteCommands(t table) {
	t.add("ssh slogin autossh", sshCommand)
	t.add("scp", scpCommand)
	t.add("sftp", func(c *invoked) {
		o := c.options(c.args, "* B= b=< c= D=! F=! i=< J= l= o= P= R= S=$ s= X=")
		c.sshSettings(o)
		c.zone(ZoneExternal, "changes files of another machine")
		if len(o.rest) > 0 {
			c.send(o.rest[0])
		}
	})
	t.add("ssh-copy-id ssh-add ssh-keyscan mosh sshfs rclone restic borg unison rsh rlogin", func(c *invoked) {
		c.known(c.args)
		c.zone(ZoneMachine, "uses or changes the user's credentials for other machines")
	})
	t.add("ssh-keygen", func(c *invoked) {
		o := c.options(c.args, "* f= t= b= C= N= P= m= a= O= D=! w=! s= I= n= V= z= R= F=")
		files := o.values("f")
		if o.has("l", "y", "B", "e", "F") {
			c.readAll(files)
			return
		}
		if len(files) == 0 || o.has("R", "D", "w") {
			c.zone(ZoneMachine, "changes the user's keys")
		}
		c.zone(ZoneWorkspace, "")
		c.writeAll(files)
	})
}

// sshCommand judges ssh. Its words are a host and a command to run there. The analysis
// does not check that command.
func sshCommand(c *invoked) {
	o := c.options(c.args, "+4 6 A a C f G g K k M N n q s T t V v X x Y y B= b= c= D=! E=> e= F=! I=! i=< J= L=! l= m= O= o= P= p= Q= R=! S= W=! w=!")
	if o.has("V", "Q") || len(o.rest) == 0 {
		return
	}
	c.sshSettings(o)
	c.zone(ZoneExternal, "runs a command on another machine")
	c.send(o.rest[0])
	for _, hop := range o.values("J") {
		for host := range strings.SplitSeq(hop.text, ",") {
			c.send(arg{text: host, known: hop.known})
		}
	}
}

// sshSettings judges the values of -o. Some settings make ssh run programs on this
// machine.
func (c *invoked) sshSettings(o *options) {
	for _, s := range o.values("o") {
		name := strings.ToLower(strings.TrimSpace(s.text[:strings.IndexAny(s.text+"=", "= ")]))
		if !s.known || !oneOf(name, "batchmode connecttimeout stricthostkeychecking serveraliveinterval serveralivecountmax loglevel port user hostname identitiesonly compression addressfamily "+
			"requesttty passwordauthentication pubkeyauthentication preferredauthentications numberofpasswordprompts connectionattempts controlpersist checkhostip visualhostkey userknownhostsfile "+
			"tcpkeepalive forwardagent kexalgorithms ciphers macs hostkeyalgorithms updatehostkeys") {
			c.unknown("the setting " + shown(s.text) + " may make ssh run programs")
			if _, command, ok := strings.Cut(s.text, "="); ok && strings.Contains(name, "command") {
				c.child(arg{text: command, known: s.known})
			}
		}
		if file, ok := strings.CutPrefix(s.text, "UserKnownHostsFile="); ok {
			c.write(literal(file))
		}
	}
}

func scpCommand(c *invoked) {
	o := c.options(c.args, "3 4 6 A B C O p q R r s T v c= D=! F=! i=< J= l= o= P= S=$ X=")
	c.sshSettings(o)
	if len(o.rest) < 2 {
		return
	}
	c.transfer(o.rest[:len(o.rest)-1], o.rest[len(o.rest)-1:])
}
