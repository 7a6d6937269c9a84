import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** An IPv4 address as an IPv6 socket shows it (RFC 4291, 2.5.5.2). */
const MAPPED = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;
/** The first 64 bits of an IPv6 address, in groups of 16: a customer chooses the remaining bits freely (RFC 6177). */
const PREFIX_GROUPS = 4;

/**
 * Determines a request's client address. X-Forwarded-For is read only on connections from a trusted proxy, and from its
 * end only as far as the proxies are trusted: a client can forge the entries before that.
 */
export class ClientAddresses {
  readonly #trusted: BlockList | undefined;

  /** `trustedProxies`: addresses, or networks such as `10.0.0.0/8`. */
  constructor(trustedProxies: readonly string[]) {
    if (trustedProxies.length === 0) return;
    this.#trusted = new BlockList();
    for (const proxy of trustedProxies) addTo(this.#trusted, proxy);
  }

  /** The address by which requests are counted: an IPv4 address, or the /64 of an IPv6 one. */
  networkOf(request: IncomingMessage): string {
    return networkOf(this.#addressOf(request));
  }

  #addressOf(request: IncomingMessage): string {
    let address = plain(request.socket.remoteAddress ?? '');
    if (!this.#trusted) return address;
    const header = request.headers['x-forwarded-for'];
    const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',');
    for (let hop = hops.pop(); hop !== undefined && this.#isTrusted(address); hop = hops.pop()) {
      const next = withoutPort(hop.trim());
      if (isIP(next) === 0) break;
      address = plain(next);
    }
    return address;
  }

  #isTrusted(address: string): boolean {
    const family = isIP(address);
    return family !== 0 && (this.#trusted?.check(address, family === 6 ? 'ipv6' : 'ipv4') ?? false);
  }
}

function addTo(list: BlockList, proxy: string): void {
  const [address = '', bits] = proxy.split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (bits === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(bits), family);
}

/** Removes the port that some proxies append: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^(\d{1,3}(?:\.\d{1,3}){3}):\d+$/.exec(hop)?.[1] ?? hop;
}

function plain(address: string): string {
  return MAPPED.exec(address)?.[1] ?? address;
}

function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const after = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0);
    while (groups.length + after < 8) groups.push('0');
  }
  const prefix = [...groups, ...(tail?.split(':') ?? [])].slice(0, PREFIX_GROUPS);
  return `${prefix.map((group) => Number.parseInt(group || '0', 16).toString(16)).join(':')}::/64`;
}
