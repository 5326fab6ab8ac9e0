package permit

import (
	"path"
	"slices"
	"strings"
)

func curlCommands(t table) { t.add("curl", curlCommand) }

// curlOptions are the options of curl that have a value, and those without a value that
// matter.
const curlOptions = `a append A= user-agent= b= cookie= c=> cookie-jar=> C= continue-at= d= data= data-ascii= data-binary= data-raw= data-urlencode= json= D=> dump-header=>
	e= referer= E=< cert=< cert-type= f fail F= form= form-string= g globoff G get h=? help=? H= header= i include show-headers I head j junk-session-cookies J remote-header-name
	k insecure K=! config=! l list-only L location location-trusted m= max-time= M manual n! netrc! netrc-file=! netrc-optional! N no-buffer o=> output=> O remote-name remote-name-all
	p proxytunnel P=! ftp-port=! q disable Q=! quote=! r= range= R remote-time s silent S show-error t=! telnet-option=! T= upload-file= u= user= U= proxy-user= v verbose
	V version w= write-out= x= proxy= X= request= y= speed-time= Y= speed-limit= z= time-cond= Z parallel 0 1 2 3 4 6 http1.0 http1.1 http2 http3 ipv4 ipv6 # progress-bar : next
	output-dir= url= url-query= preproxy= socks4= socks4a= socks5= socks5-hostname= socks5-gssapi-service= proxy-header= proxy1.0= noproxy= resolve= connect-to= unix-socket=! abstract-unix-socket=!
	interface= dns-servers= dns-interface= dns-ipv4-addr= dns-ipv6-addr= doh-url= cacert=< capath=< crlfile=< key=< key-type= pass= pinnedpubkey= ciphers= tls13-ciphers= curves= tls-max=
	tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 ssl ssl-reqd sslv2 sslv3 compressed compressed-ssh create-dirs create-file-mode= ftp-create-dirs remove-on-error retry= retry-delay= retry-max-time= retry-connrefused
	retry-all-errors connect-timeout= keepalive-time= keepalive-cnt= limit-rate= max-filesize= max-redirs= rate= fail-with-body fail-early post301 post302 post303 proto= proto-default= proto-redir=
	oauth2-bearer= aws-sigv4= anyauth basic digest negotiate ntlm no-keepalive no-progress-meter no-sessionid no-alpn no-npn no-buffer no-clobber path-as-is raw stderr=> trace=> trace-ascii=> trace-time
	trace-ids trace-config= tcp-nodelay tcp-fastopen tr-encoding etag-save=> etag-compare=< hsts=> alt-svc=> libcurl=> engine=! variable=! expand-url=! expand-data=! expand-header=! expand-output=!
	mail-from=! mail-rcpt=! mail-auth=! mail-rcpt-allowfails! crlf delegation= login-options= local-port= parallel-max= parallel-immediate haproxy-protocol haproxy-clientip= happy-eyeballs-timeout-ms=
	ignore-content-length disallow-username-in-url styled-output http0.9 request-target= sasl-ir sasl-authzid= service-name= suppress-connect-headers ssl-no-revoke ssl-allow-beast xattr
	expect100-timeout= ftp-method= ftp-pasv disable-epsv disable-eprt ftp-ssl-control doh-insecure doh-cert-status cert-status false-start hostpubmd5= hostpubsha256= pubkey= proxy-insecure proxy-cacert=<
	proxy-cert=< proxy-key=< proxy-capath=< proxy-anyauth proxy-basic proxy-digest proxy-ntlm proxy-negotiate proxy-tlsv1 ca-native proxy-ca-native skip-existing max-time= ipfs-gateway= metalink no-compressed
	dump-ca-embed ech= out-null vlan-priority= ip-tos= quote=! postquote=! prequote=!`

func curlCommand(c *invoked) {
	o := c.options(c.args, curlOptions)
	urls := slices.Concat(o.rest, o.values("url"))
	if len(urls) == 0 {
		return
	}
	zone, why := ZoneNetwork, "fetches from the network"
	if c.curlSends(o) {
		zone, why = ZoneExternal, "sends data over the network"
	}
	c.zone(zone, why)
	for _, u := range urls {
		c.curlURL(u, zone, o)
	}
	c.curlRoute(o)
	dir, placed := o.value("output-dir")
	if placed {
		c.write(dir)
	}
	if o.has("J", "remote-header-name") {
		c.unknown("the server chooses which file it writes")
	}
	for _, out := range o.values("o", "output") {
		if strings.Contains(out.text, "#") { // #1 stands for a part of the URL
			c.unknown("cannot determine which files it writes")
		}
	}
	if o.has("O", "remote-name", "remote-name-all") {
		c.zone(ZoneWorkspace, "")
		for _, u := range urls {
			name := arg{text: fileOfURL(u.text), known: u.known}
			if placed {
				name = under(dir, name)
			}
			c.write(name)
		}
	}
	for _, format := range o.values("w", "write-out") {
		if file, ok := strings.CutPrefix(format.text, "@"); ok {
			c.read(literal(file))
			c.unknown("cannot determine what it writes: --write-out reads its format from a file")
		}
		if strings.Contains(format.text, "%output") {
			c.unknown("--write-out writes to files")
		}
	}
}

// curlSends reports whether a request changes something or uploads a file. It also
// records that curl reads the files that it sends.
func (c *invoked) curlSends(o *options) bool {
	sends := o.has("a", "append")
	for i := range o.given {
		value := o.given[i].value
		switch name := o.given[i].name; name {
		case "d", "data", "data-ascii", "data-binary", "json":
			sends = c.curlFile(value) || sends || !o.has("G", "get")
		case "data-urlencode", "url-query": // name@file
			sends = sends || !o.has("G", "get") && name != "url-query"
			if at := strings.IndexAny(value.text, "@="); at >= 0 && value.text[at] == '@' {
				c.read(arg{text: value.text[at+1:], known: value.known})
				sends = true
			}
		case "data-raw", "form-string":
			sends = sends || !o.has("G", "get")
		case "F", "form":
			sends = true
			c.curlForm(value)
		case "T", "upload-file":
			sends = true
			c.read(value)
		case "X", "request":
			sends = sends || !value.known || !oneOf(value.text, "GET HEAD OPTIONS get head options")
		case "H", "header", "proxy-header":
			sends = c.curlFile(value) || sends
		case "b", "cookie":
			if !strings.Contains(value.text, "=") {
				c.read(value)
				sends = sends || value.text != ""
			}
		}
	}
	return sends
}

// curlFile reports whether a value begins with @. If so, it records that curl reads the
// file after the @.
func (c *invoked) curlFile(value arg) bool {
	file, ok := strings.CutPrefix(value.text, "@")
	if ok {
		c.read(arg{text: file, known: value.known})
	}
	return ok
}

// curlForm records that curl reads the files in a form field, such as
// name=@file,file;type=x.
func (c *invoked) curlForm(field arg) {
	_, value, _ := strings.Cut(field.text, "=")
	switch {
	case value != "" && strings.IndexByte("@<", value[0]) >= 0:
		for part := range strings.SplitSeq(value[1:], ",") {
			file, _, _ := strings.Cut(part, ";")
			c.read(arg{text: file, known: field.known})
		}
	case strings.ContainsAny(value, "@<"):
		c.unknown("cannot determine which files it sends")
	}
}

// curlURL records that curl connects to a URL. Braces and brackets in a URL stand for
// several URLs.
func (c *invoked) curlURL(u arg, least Zone, o *options) {
	if !u.known {
		c.address(u, least)
		return
	}
	text := u.text
	if !o.has("g", "globoff") && variesHost(text) {
		c.unknown("cannot determine which hosts it connects to")
	}
	scheme, _, ok := strings.Cut(strings.ToLower(text), "://")
	switch {
	case !ok || oneOf(scheme, "http https file"):
		c.address(u, least)
	case oneOf(scheme, "ftp ftps sftp scp ws wss"):
		c.address(u, least)
	default:
		c.address(u, ZoneMachine) // gopher, dict, telnet and others can send any data
	}
}

// variesHost reports whether braces or brackets in a URL stand for several schemes or
// hosts. It ignores the brackets of an IPv6 address.
func variesHost(url string) bool {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		scheme, rest = "", url
	}
	host := rest[:strings.IndexAny(rest+"/", "/?#")]
	host = host[strings.LastIndexByte(host, '@')+1:]
	return strings.ContainsAny(scheme, "{[") || strings.Contains(host, "{") || strings.LastIndexByte(host, '[') > 0 ||
		strings.HasPrefix(host, "[") && strings.Trim(host[1:strings.IndexByte(host+"]", ']')], "0123456789abcdefABCDEF:.%") != "" && strings.Contains(host, "-")
}

// curlRoute records the other machines that a request uses, such as proxies.
func (c *invoked) curlRoute(o *options) {
	for _, p := range o.values("x", "proxy", "preproxy", "socks4", "socks4a", "socks5", "socks5-hostname", "proxy1.0", "doh-url", "ipfs-gateway") {
		if p.text != "" || !p.known {
			c.through(p)
		}
	}
	for _, r := range o.values("resolve") { // host:port:address[,address]
		parts := strings.SplitN(strings.TrimLeft(r.text, "+-"), ":", 3)
		if len(parts) < 3 {
			continue
		}
		for address := range strings.SplitSeq(parts[2], ",") {
			c.through(arg{text: address, known: r.known})
		}
	}
	for _, r := range o.values("connect-to") { // host:port:host:port
		rest := r.text
		for range 2 {
			if strings.HasPrefix(rest, "[") {
				_, rest, _ = strings.Cut(rest, "]")
			}
			_, rest, _ = strings.Cut(rest, ":")
		}
		if host := strings.TrimRight(rest, ":"); host != "" {
			c.through(arg{text: host, known: r.known})
		}
	}
}

// through records that the command names a registry, proxy or remote to use instead of
// the usual one. That machine learns what the command requests.
func (c *invoked) through(a arg) {
	c.zone(ZoneExternal, "uses a registry, proxy or remote that the command names")
	c.send(a)
}

// throughAll calls through for each argument that is not empty.
func (c *invoked) throughAll(args []arg) {
	for _, a := range args {
		if a.text != "" || !a.known {
			c.through(a)
		}
	}
}

// fileOfURL returns the file name that programs derive from a URL.
func fileOfURL(url string) string {
	url = url[:strings.IndexAny(url+"?", "?#")]
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	if !strings.Contains(url, "/") {
		return "index.html"
	}
	name := path.Base(url)
	if strings.HasSuffix(url, "/") {
		name = "index.html"
	}
	return strings.NewReplacer("%2f", "/", "%2F", "/", "%2e", ".", "%2E", ".").Replace(name)
}
