import { BlockList, isIP, isIPv4 } from 'node:net';

/**
 * IPv4 that is not the public internet: IANA's special-purpose registry (RFC 6890 and its updates) without the rows that
 * are reachable from everywhere, multicast and what is reserved above it.
 */
const CLOSED_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

/**
 * Of IPv6 only global unicast, 2000::/3, is public, so that loopback, unique local, link-local, multicast, IPv4-mapped,
 * NAT64 (64:ff9b::/96, 64:ff9b:1::/48) and whatever is assigned later are out. Inside it these are closed: protocol
 * assignments with Teredo, documentation, 6to4 and documentation again; Teredo and 6to4 lead to any IPv4 address.
 */
const GLOBAL_IPV6: readonly [string, number] = ['2000::', 3];
const CLOSED_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const closed4 = new BlockList();
for (const [address, bits] of CLOSED_IPV4) closed4.addSubnet(address, bits, 'ipv4');
const global6 = new BlockList();
global6.addSubnet(...GLOBAL_IPV6, 'ipv6');
const closed6 = new BlockList();
for (const [address, bits] of CLOSED_IPV6) closed6.addSubnet(address, bits, 'ipv6');

/** Whether an IP address, as Node writes it, lies in the public internet. False for what is no IP address. */
export function isPublicAddress(address: string): boolean {
  // A zone (fe80::1%eth0) belongs to addresses of this machine's links alone.
  if (isIP(address) === 0 || address.includes('%')) return false;
  if (isIPv4(address)) return !closed4.check(address, 'ipv4');
  return global6.check(address, 'ipv6') && !closed6.check(address, 'ipv6');
}
