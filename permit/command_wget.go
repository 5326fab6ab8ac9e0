package permit

import (
	"slices"
	"strings"
)

func wgetCommands(t table) {
	t.add("wget wget2", wgetCommand)
	t.add("http https xh xhs", httpieCommand)
	t.add("aria2c axel", func(c *invoked) {
		o := c.options(c.args, "* o=> out=> d=> dir=> l=> log=> i=! input-file=! conf-path=! on-download-complete=$ on-download-start=$ on-download-error=$ on-download-stop=$ on-download-pause=$ "+
			"on-bt-download-complete=$ all-proxy=! http-proxy=! https-proxy=! enable-rpc=?! save-session=> s= x= j= k= n= header= U= user-agent= load-cookies=< save-cookies=> H=")
		c.zone(ZoneNetwork, "fetches from the network")
		if o.has("load-cookies") {
			c.zone(ZoneExternal, "sends a file")
		}
		for _, u := range o.rest {
			c.fetch(u)
			c.write(arg{text: fileOfURL(u.text), known: u.known})
		}
	})
	t.add("youtube-dl yt-dlp", func(c *invoked) {
		o := c.options(c.args, "* exec=$ o=> output=> P=> paths=> config-location=! config-locations=! a=< batch-file=< f= format= cookies=< cookies-from-browser=! downloader=! external-downloader=! proxy=! "+
			"plugin-dirs=! ffmpeg-location=!")
		c.zone(ZoneNetwork, "fetches from the network")
		if o.has("cookies") {
			c.zone(ZoneExternal, "sends a file")
		}
		for _, u := range o.rest {
			c.fetch(u)
		}
	})
}

// wgetCommand judges wget. It writes a file unless -O - or --spider is set.
func wgetCommand(c *invoked) {
	o := c.options(c.args, "V version h help b background e=! execute=! o=> output-file=> a=> append-output=> d debug q quiet v verbose nv no-verbose nc no-clobber i= input-file= F force-html B= base= config=! "+
		"rejected-log=> t= tries= retry-connrefused retry-on-http-error= O= output-document= c continue start-pos= progress= show-progress N timestamping no-use-server-timestamps S server-response spider "+
		"T= timeout= dns-timeout= connect-timeout= read-timeout= w= wait= waitretry= random-wait Q= quota= bind-address= bind-dns-address= dns-servers= limit-rate= no-dns-cache restrict-file-names= "+
		"4 inet4-only 6 inet6-only prefer-family= user= password= ask-password use-askpass=$ no-iri local-encoding= remote-encoding= unlink x force-directories nd no-directories nH no-host-directories "+
		"protocol-directories cut-dirs= P= directory-prefix= default-page= E adjust-extension http-user= http-password= no-cache header= compression= max-redirect= proxy-user= proxy-password= referer= "+
		"save-headers U= user-agent= no-http-keep-alive no-cookies load-cookies=< save-cookies=> keep-session-cookies post-data= post-file= method= body-data= body-file= content-disposition "+
		"content-on-error trust-server-names auth-no-challenge ignore-length secure-protocol= https-only no-check-certificate certificate=< certificate-type= private-key=< private-key-type= ca-certificate=< "+
		"ca-directory=< crl-file=< pinnedpubkey= random-file=< egd-file=! ciphers= no-hsts hsts-file=> ftp-user= ftp-password= no-remove-listing no-glob no-passive-ftp preserve-permissions retr-symlinks "+
		"warc-file=> warc-header= warc-max-size= warc-cdx warc-dedup=< warc-tempdir=> r recursive l= level= delete-after k convert-links K backup-converted m mirror p page-requisites strict-comments "+
		"A= accept= R= reject= accept-regex= reject-regex= regex-type= D= domains= exclude-domains= follow-ftp follow-tags= ignore-tags= H span-hosts L relative I= include-directories= X= exclude-directories= "+
		"np no-parent no-proxy no-verbose n= input-metalink=! if-modified-since no-netrc report-speed= no-if-modified-since xattr")
	if len(o.rest) == 0 && !o.has("i", "input-file") {
		return
	}
	zone, why := ZoneNetwork, "fetches from the network"
	for _, f := range o.values("post-file", "body-file") {
		c.read(f)
	}
	method, given := o.value("method")
	if o.has("post-data", "post-file", "body-data", "body-file", "load-cookies") || given && !oneOf(strings.ToUpper(method.text), "GET HEAD OPTIONS") {
		zone, why = ZoneExternal, "sends data over the network"
	}
	c.zone(zone, why)
	if list, ok := o.value("i", "input-file"); ok {
		c.read(list)
		c.unknown("cannot determine which addresses it connects to")
	}
	for _, u := range o.rest {
		c.address(u, zone)
	}
	c.wgetFiles(o)
}

func (c *invoked) wgetFiles(o *options) {
	dir, placed := o.value("P", "directory-prefix")
	if placed {
		c.write(dir)
	}
	if out, ok := o.value("O", "output-document"); ok {
		c.emit(out)
		return
	}
	if o.has("content-disposition", "trust-server-names") {
		c.unknown("the server chooses which file it writes")
	}
	if o.has("spider") {
		return
	}
	flat := slices.ContainsFunc(o.values("n"), func(a arg) bool { return strings.ContainsAny(a.text, "Hd") })
	if o.may("r", "recursive", "m", "mirror", "p", "page-requisites") {
		switch {
		case placed:
			c.overwrite(dir)
		case flat || o.may("nH", "no-host-directories", "nd", "no-directories"):
			c.unknown("the server chooses which files it writes: pass a directory for them with -P")
		}
	}
	for _, u := range o.rest {
		name := arg{text: fileOfURL(u.text), known: u.known}
		if placed {
			name = under(dir, name)
		}
		c.write(name)
	}
}

// httpieCommand judges HTTPie. Its words are a method, a URL and items. With items, the
// request is a POST.
func httpieCommand(c *invoked) {
	o := c.options(c.args, "* o=> output=> proxy=! session=! session-read-only=! cert=< cert-key=< verify= a= auth= A= auth-type= timeout= raw= p= print= s= style= d download")
	words := o.rest
	if len(words) == 0 {
		return
	}
	zone := ZoneNetwork
	if first := word(words, 0); first != "" && first == strings.ToUpper(first) && strings.Trim(first, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && len(words) > 1 {
		if !oneOf(first, "GET HEAD OPTIONS") {
			zone = ZoneExternal
		}
		words = words[1:]
	}
	for _, item := range words[1:] {
		switch {
		case strings.Contains(item.text, "@"):
			_, file, _ := strings.Cut(item.text, "@")
			c.read(arg{text: file, known: item.known})
			zone = ZoneExternal
		case strings.Contains(item.text, "=") && !strings.Contains(item.text, "=="):
			zone = ZoneExternal
		}
	}
	if o.has("raw") || c.piped {
		zone = ZoneExternal
	}
	c.zone(zone, "uses the network")
	url := words[0]
	if strings.HasPrefix(url.text, ":") { // :3000/x is this machine
		url.text = "localhost" + url.text
	}
	c.address(url, zone)
}
