import { isIP } from 'node:net';
import { isPublicAddress } from './publicAddress.js';

/** Ports of http and https; any other needs an entry of its own in OUTBOUND_ALLOWED_HOSTS. */
const OPEN_PORTS = new Set(['80', '443']);
const URL_CHARS_MAX = 2_048;
/** Names that mean this machine or its own network wherever they are asked (RFC 6761, RFC 6762, RFC 8375, RFC 9476). */
const LOCAL_NAMES = /(?:^|\.)(?:localhost|localdomain|local|internal|home\.arpa|alt|onion)$/;

/** An address that a request may go to, as far as its text tells; where its name leads is looked at when it connects. */
export interface Target {
  url: URL;
  /** Name or IP address, without brackets and without a final dot. */
  host: string;
  /** Named by the operator: its address may lie inside, and its port is free where the entry names it. */
  isAllowed: boolean;
}

/** Hosts that the operator names, as a URL writes them: `host` opens the usual ports, `host:port` that port. */
export type AllowedHosts = ReadonlySet<string>;

/**
 * Reads an address that a user gave. A text is returned instead where no request may go there: a sentence without a
 * subject that says why. Decimal, octal and hexadecimal forms of an IP address, full-width letters and the like are
 * read as the URL standard reads them, so they are judged as the address that would be connected to.
 */
export function readTarget(text: string, allowedHosts: AllowedHosts): Target | string {
  if (text.length > URL_CHARS_MAX) return `must have at most ${URL_CHARS_MAX} characters`;
  if (!URL.canParse(text)) return 'must be a whole address such as https://example.com/path';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://';
  if (url.username !== '' || url.password !== '') return 'must not hold a user or a password';
  url.hash = '';
  // As it is stored and asked, it may be longer: what is no ASCII is escaped.
  if (url.href.length > URL_CHARS_MAX) return `must have at most ${URL_CHARS_MAX} characters, escaped`;
  const name = url.hostname.replace(/\.$/, '');
  const host = name.replace(/^\[|\]$/g, '');
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const isOpenPort = OPEN_PORTS.has(port);
  if (allowedHosts.has(`${name}:${port}`) || (isOpenPort && allowedHosts.has(name)))
    return { url, host, isAllowed: true };
  if (!isOpenPort) return BAD_PORT;
  if (isIP(host) !== 0) return isPublicAddress(host) ? { url, host, isAllowed: false } : NOT_PUBLIC;
  // A name of one part is completed by this machine's search domains: it is a name of the inside.
  if (!host.includes('.') || LOCAL_NAMES.test(host)) return NOT_PUBLIC;
  return { url, host, isAllowed: false };
}

export const BAD_PORT = 'must use port 80 or 443';
export const NOT_PUBLIC = 'must lead to the public internet, not to this machine or its network';
/** What else can be done about an address of the operator's own network, for whoever enters one. */
export const ALLOW_REMEDY =
  'the operator can allow a host and port of its own network (OUTBOUND_ALLOWED_HOSTS)';
