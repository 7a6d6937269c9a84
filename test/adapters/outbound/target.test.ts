import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPublicAddress, readTarget } from '../../../adapters/outbound/safeFetch.js';

const read = (text: string, allowed: string[] = []) => readTarget(text, new Set(allowed));
const isRefused = (text: string, allowed: string[] = []) => typeof read(text, allowed) === 'string';

describe('an IP address', () => {
  it.each([
    ['this network', '0.0.0.0', '0.1.2.3', '0.255.255.255'],
    [
      'private',
      '10.0.0.0',
      '10.255.255.255',
      '172.16.0.0',
      '172.31.255.255',
      '192.168.0.0',
      '192.168.255.255',
    ],
    ['shared by carriers', '100.64.0.0', '100.127.255.255'],
    ['loopback', '127.0.0.1', '127.255.255.255', '::1', '::'],
    [
      'link-local, with the metadata services of clouds',
      '169.254.0.1',
      '169.254.169.254',
      'fe80::1',
      'febf::1',
    ],
    ['for protocols', '192.0.0.1', '192.0.0.170', '2001:1::1', '2001:2::1', '2001:20::1'],
    ['for documentation', '192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
    ['for benchmarks', '198.18.0.1', '198.19.255.255'],
    ['multicast', '224.0.0.1', '239.255.255.255', 'ff02::1'],
    ['reserved', '240.0.0.1', '255.255.255.255'],
    ['unique local', 'fc00::1', 'fd00:ec2::254', 'fdff::1'],
    ['site-local', 'fec0::1'],
    ['IPv4 inside IPv6', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::127.0.0.1', '::ffff:0:127.0.0.1'],
    ['NAT64', '64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::1'],
    ['6to4, and its relays', '2002:7f00:1::', '2002:808:808::1', '192.88.99.1'],
    ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
    ['discarded', '100::1'],
    ['segment routing', '5f00::1'],
    ['with a zone', '2606:4700::1111%eth0'],
    ['none at all', 'localhost', '', '1.2.3', '1.2.3.4.5'],
  ])('is not public: %s', (_kind, ...addresses) => {
    for (const address of addresses) expect(isPublicAddress(address), address).toBe(false);
  });

  it('is public in all the rest', () => {
    for (const address of [
      '1.1.1.1',
      '8.8.8.8',
      '9.255.255.255',
      '11.0.0.0',
      '100.63.255.255',
      '100.128.0.0',
      '126.255.255.255',
      '128.0.0.0',
      '169.253.255.255',
      '172.15.255.255',
      '172.32.0.0',
      '192.0.1.0',
      '192.167.255.255',
      '198.17.255.255',
      '198.20.0.0',
      '223.255.255.255',
      '2606:4700:4700::1111',
      '2a00:1450:4001::1',
      '2003::1',
      '3ffe::1',
    ])
      expect(isPublicAddress(address), address).toBe(true);
  });
});

describe('an address from a user', () => {
  it.each([
    [
      'another scheme',
      'gopher://example.com/',
      'file:///etc/passwd',
      'ftp://example.com',
      'data:,x',
      'javascript:1',
      'ws://example.com',
      'unix:/run/x',
    ],
    ['a user', 'https://user@example.com/', 'https://user:pass@example.com/', 'https://:pass@example.com'],
    [
      'another port',
      'http://example.com:5432/',
      'https://example.com:8443',
      'http://example.com:22',
      'https://example.com:0',
    ],
    [
      'this machine',
      'http://127.0.0.1/',
      'http://[::1]/',
      'http://localhost/',
      'http://localhost./',
      'http://LOCALHOST',
      'http://a.localhost/',
      'http://0/',
    ],
    [
      'an address written otherwise',
      'http://2130706433/',
      'http://0x7f000001/',
      'http://0x7f.1/',
      'http://017700000001/',
      'http://127.1/',
      'http://127.0.0.1./',
      'http://0300.0250.1.1',
      'http://0xa9fea9fe/',
    ],
    [
      'letters that look like others',
      'http://１２７.０.０.１/',
      'http://ⓛocalhost/',
      'http://loc\u00adalhost/',
      'http://127。0。0。1/',
    ],
    [
      'IPv6 with IPv4 inside',
      'http://[::ffff:127.0.0.1]/',
      'http://[::ffff:7f00:1]/',
      'http://[64:ff9b::a00:1]/',
      'http://[2002:a00:1::]/',
    ],
    [
      'metadata services',
      'http://169.254.169.254/latest/meta-data/',
      'http://[fd00:ec2::254]/',
      'http://metadata/',
      'http://metadata.google.internal/',
    ],
    [
      'names of the inside',
      'http://postgres/',
      'http://printer.local/',
      'http://router.home.arpa',
      'http://db.internal./',
    ],
    [
      'no address',
      '',
      ' ',
      '/hooks',
      '//example.com',
      'example.com',
      'https://',
      'http://exa mple.com',
      'http://%00/',
      `https://example.com/${'x'.repeat(2_048)}`,
    ],
  ])('is refused for what it is: %s', (_kind, ...texts) => {
    for (const text of texts) expect([text, isRefused(text)]).toEqual([text, true]);
  });

  it('is taken where it is an ordinary one, without its fragment', () => {
    for (const [text, href] of [
      ['https://example.com/hook?a=1#part', 'https://example.com/hook?a=1'],
      ['http://example.com:80/', 'http://example.com/'],
      ['http://example.com:443/', 'http://example.com:443/'],
      ['https://EXAMPLE.com.:443/', 'https://example.com./'],
      ['https://münchen.example/', 'https://xn--mnchen-3ya.example/'],
      ['https://1.1.1.1/', 'https://1.1.1.1/'],
      ['https://[2606:4700::1111]/', 'https://[2606:4700::1111]/'],
    ] as const) {
      const target = read(text);
      expect(typeof target === 'string' ? target : target.url.href, text).toBe(href);
    }
  });

  it('may lie inside where the operator names its host, at the usual ports or at the one that is named', () => {
    const allowed = ['hooks.internal', '10.1.2.3:9000', '[::1]:8080', 'localhost'];
    for (const text of [
      'http://hooks.internal/',
      'https://HOOKS.internal./x',
      'http://10.1.2.3:9000/',
      'http://[::1]:8080/',
      'http://localhost/',
    ])
      expect(read(text, allowed), text).toMatchObject({ isAllowed: true });
    for (const text of [
      'http://hooks.internal:8080/',
      'http://10.1.2.3/',
      'http://[::1]/',
      'http://a.hooks.internal/',
      'http://localhost:5432/',
      'ftp://localhost/',
      'http://u@localhost/',
    ])
      expect(isRefused(text, allowed), text).toBe(true);
  });

  it('is judged as the address that would be connected to, in whichever form it is written', () => {
    const forms = (value: number): string[] => {
      const [a, b, c, d] = [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255] as const;
      return [
        `${value}`,
        `0x${value.toString(16)}`,
        `0${value.toString(8)}`,
        `${a}.${b}.${c}.${d}`,
        `0x${a.toString(16)}.${b}.0${c.toString(8)}.${d}`,
        `${a}.${(b << 16) | (c << 8) | d}`,
        `${a}.${b}.${(c << 8) | d}.`,
      ];
    };
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (value) => {
        const dotted = forms(value)[3] ?? '';
        for (const form of forms(value))
          expect(isRefused(`http://${form}/`), form).toBe(!isPublicAddress(dotted));
        expect(isRefused(`http://[::ffff:${dotted}]/`), dotted).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
