import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ClientAddresses } from '../../../api/limits/clientAddress.js';

const request = (remoteAddress: string, forwarded?: string | string[]) =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;
const from = (trusted: string[], ...rest: Parameters<typeof request>) =>
  new ClientAddresses(trusted).networkOf(request(...rest));

describe('the address of a request', () => {
  it('is the connection’s; without a trusted proxy X-Forwarded-For is ignored', () => {
    expect(from([], '192.0.2.1')).toBe('192.0.2.1');
    expect(from([], '192.0.2.1', '198.51.100.7')).toBe('192.0.2.1');
    expect(from(['10.0.0.0/8'], '192.0.2.1', '198.51.100.7')).toBe('192.0.2.1');
  });

  it('is what the nearest trusted proxy saw: what its client wrote before that is not believed', () => {
    expect(from(['10.0.0.0/8'], '10.1.2.3', '198.51.100.7')).toBe('198.51.100.7');
    expect(from(['10.0.0.0/8'], '10.1.2.3', '203.0.113.9, 198.51.100.7')).toBe('198.51.100.7');
    expect(from(['10.0.0.0/8'], '10.1.2.3', ['203.0.113.9', '198.51.100.7'])).toBe('198.51.100.7');
  });

  it('is looked for behind several proxies as long as each is trusted', () => {
    expect(from(['10.0.0.0/8', '172.16.0.1'], '10.1.2.3', '203.0.113.9, 198.51.100.7, 172.16.0.1')).toBe(
      '198.51.100.7',
    );
    expect(from(['10.0.0.0/8'], '10.1.2.3', '10.9.9.9, 10.8.8.8')).toBe('10.9.9.9');
  });

  it('is the proxy’s own where it wrote none, or one that is no address', () => {
    expect(from(['10.0.0.0/8'], '10.1.2.3')).toBe('10.1.2.3');
    for (const wrong of ['', 'unknown', '_hidden', '999.1.1.1', 'evil.example', '::1::2', "' or 1=1"])
      expect(from(['10.0.0.0/8'], '10.1.2.3', wrong), wrong).toBe('10.1.2.3');
  });

  it('is read with a port too, as some proxies write it', () => {
    expect(from(['10.0.0.0/8'], '10.1.2.3', '198.51.100.7:52100')).toBe('198.51.100.7');
    expect(from(['10.0.0.0/8'], '10.1.2.3', '[2001:db8:1:2::9]:443')).toBe('2001:db8:1:2::/64');
  });

  it('of IPv6 is the network of 64 bits, however it is written', () => {
    for (const address of [
      '2001:db8:1:2:3:4:5:6',
      '2001:0db8:0001:0002:0000:0000:0000:0001',
      '2001:DB8:1:2::',
      '2001:db8:1:2::ffff:192.0.2.1',
    ])
      expect(from([], address), address).toBe('2001:db8:1:2::/64');
    expect(from([], '2001:db8:1:3::1')).toBe('2001:db8:1:3::/64');
    expect(from([], '::1')).toBe('0:0:0:0::/64');
    expect(from([], 'fe80::1%eth0')).toBe('fe80:0:0:0::/64');
    expect(from([], '64:ff9b::192.0.2.33')).toBe('64:ff9b:0:0::/64');
  });

  it('of IPv4 on a socket of IPv6 is the IPv4 address, for trust as well', () => {
    expect(from([], '::ffff:192.0.2.1')).toBe('192.0.2.1');
    expect(from(['10.0.0.0/8'], '::ffff:10.1.2.3', '::ffff:198.51.100.7')).toBe('198.51.100.7');
    expect(from(['fd00::/8'], 'fd00::5', '198.51.100.7')).toBe('198.51.100.7');
  });
});
