import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** What an IPv4 address is called on a socket that speaks IPv6 (RFC 4291, 2.5.5.2). */
const MAPPED = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;
/** Groups of an IPv6 address that its provider assigns as one (RFC 6177): the rest is the customer's to choose. */
const PREFIX_GROUPS = 4;

/**
 * Finds out where a request comes from. The header X-Forwarded-For is read only where the connection comes from a trusted
 * proxy, and only from its end as far as proxies are trusted: anybody can have written what precedes that.
 */
export class ClientAddresses {
  readonly #trusted: BlockList | undefined;

  /** `trustedProxies`: addresses, or networks as `10.0.0.0/8`. */
  constructor(trustedProxies: readonly string[]) {
    if (trustedProxies.length === 0) return;
    this.#trusted = new BlockList();
    for (const proxy of trustedProxies) addTo(this.#trusted, proxy);
  }

  /** The address whose requests are counted together: an IPv4 address, or the /64 of an IPv6 one. */
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

/** Some proxies write the port too: `192.0.2.1:443`, `[2001:db8::1]:443`. */
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
