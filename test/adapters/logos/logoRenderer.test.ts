import { deflateSync } from 'node:zlib';
import { createCanvas, loadImage } from '@napi-rs/canvas';
import { describe, expect, it } from 'vitest';
import { drawLogo } from '../../../adapters/logos/drawLogo.js';
import { createLogoRenderer } from '../../../adapters/logos/logoRenderer.js';
import { crc32 } from '../../../domain/access/keyRules.js';
import { DomainError } from '../../../domain/errors.js';

/** Longest time for one file, on a busy machine. */
const TIME_MS_MAX = 5_000;

const SQUARE = '<rect width="10" height="10" fill="#cc0000"/>';
const svg = (content: string, attributes = 'viewBox="0 0 10 10"', before = '') =>
  Buffer.from(
    `${before}<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ${attributes}>${content}</svg>`,
  );

function chunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(named.toString('latin1')));
  return Buffer.concat([length, named, check]);
}

interface Png {
  width: number;
  height: number;
  data: Buffer;
  /** Chunks between header and pixels. */
  more: Buffer[];
  after: Buffer;
}

/** A PNG of opaque pixels, 8 bits RGBA; what is given replaces its own. */
function png(given: Partial<Png> = {}): Buffer {
  const { width = 4, height = 4, more = [], after = Buffer.alloc(0) } = given;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(Math.min(width, 10_000) * 4, 0xff)]);
  const data =
    given.data ?? deflateSync(Buffer.concat(Array.from({ length: Math.min(height, 10_000) }, () => row)));
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    ...more,
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
    after,
  ]);
}

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const BOMB = deflateSync(Buffer.alloc(100_000_000));
const ENTITIES =
  '<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>';
const uses = Array.from(
  { length: 20 },
  (_, at) => `<g id="u${at + 1}"><use xlink:href="#u${at}"/><use xlink:href="#u${at}"/></g>`,
).join('');

/** Files that are refused, each with a sentence that names why. */
const REFUSED: [name: string, file: Buffer, code: string, sentence: RegExp][] = [
  ['a script', svg(`<script>alert(1)</script>${SQUARE}`), 'invalid_logo', /<script>/],
  [
    'a script in another prefix',
    svg(`<svg:script>alert(1)</svg:script>${SQUARE}`),
    'invalid_logo',
    /<script>/,
  ],
  ['an event handler', svg(SQUARE, 'viewBox="0 0 10 10" onload="alert(1)"'), 'invalid_logo', /onload/],
  ['a handler on a shape', svg('<rect width="9" height="9" onclick="x()"/>'), 'invalid_logo', /onclick/],
  ['a web page inside', svg('<foreignObject><iframe/></foreignObject>'), 'invalid_logo', /<foreignObject>/],
  ['a frame', svg(`<iframe src="https://example.com"/>${SQUARE}`), 'invalid_logo', /<iframe>/],
  ['a link that runs', svg(`<a xlink:href="javascript:alert(1)">${SQUARE}</a>`), 'invalid_logo', /<a>/],
  [
    'a remote image',
    svg('<image href="http://169.254.169.254/latest" width="9" height="9"/>'),
    'invalid_logo',
    /<image>/,
  ],
  [
    'a local image',
    svg('<image xlink:href="file:///etc/passwd" width="9" height="9"/>'),
    'invalid_logo',
    /<image>/,
  ],
  ['an embedded image', svg('<image href="data:image/svg+xml;base64,AAAA"/>'), 'invalid_logo', /<image>/],
  [
    'a fill from elsewhere',
    svg('<rect width="9" height="9" fill="url(http://example.com/a#b)"/>'),
    'invalid_logo',
    /outside/,
  ],
  ['a style from elsewhere', svg('<rect style="fill:url(//example.com/a)"/>'), 'invalid_logo', /outside/],
  [
    'an imported style sheet',
    svg(`<style>@import url(http://example.com/a.css);</style>${SQUARE}`),
    'invalid_logo',
    /@ rules/,
  ],
  [
    'a font from elsewhere',
    svg('<style>@font-face{src:url(http://example.com)}</style>'),
    'invalid_logo',
    /@ rules/,
  ],
  [
    'an external entity',
    svg('&x;', 'viewBox="0 0 9 9"', '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
    'invalid_logo',
    /entities/,
  ],
  ['an entity bomb', svg('&c;', 'viewBox="0 0 9 9"', ENTITIES), 'invalid_logo', /entities/],
  ['an entity that nobody declares', svg(`<title>&nbsp;</title>${SQUARE}`), 'invalid_logo', /entity/],
  ['a use bomb', svg(`<g id="u0">${SQUARE}</g>${uses}<use xlink:href="#u20"/>`), 'invalid_logo', /<use>/],
  [
    'a filter bomb',
    svg('<filter id="f"><feGaussianBlur stdDeviation="99999"/></filter><rect filter="url(#f)"/>'),
    'invalid_logo',
    /<filter>/,
  ],
  ['a pattern', svg('<pattern id="p" width="0.0001" height="0.0001"/>'), 'invalid_logo', /<pattern>/],
  ['text, whose font nobody has', svg('<text x="1" y="5">Acme</text>'), 'invalid_logo', /<text>/],
  ['deep nesting', svg(`${'<g>'.repeat(20_000)}${SQUARE}${'</g>'.repeat(20_000)}`), 'invalid_logo', /nests/],
  ['deep nesting without an end', svg('<g>'.repeat(200_000)), 'invalid_logo', /nests|well-formed/],
  ['too many elements', svg(SQUARE.repeat(10_000)), 'invalid_logo', /more than/],
  [
    'too many attributes',
    svg(`<rect ${Array.from({ length: 90 }, (_, at) => `a${at}="1"`).join(' ')}/>`),
    'invalid_logo',
    /attributes/,
  ],
  ['an SVG that was cut off', svg(SQUARE).subarray(0, 120), 'invalid_logo', /cut off/],
  [
    'content after the end',
    Buffer.concat([svg(SQUARE), Buffer.from('<script/>')]),
    'invalid_logo',
    /after its end/,
  ],
  ['tags that overlap', svg('<g><defs></g></defs>'), 'invalid_logo', /overlap/],
  ['no size', svg(SQUARE, ''), 'invalid_logo', /no size/],
  ['a size beyond measure', svg(SQUARE, 'viewBox="0 0 1e30 1e30"'), 'invalid_logo', /larger/],
  ['nothing to see', svg('<g/>'), 'invalid_logo', /nothing of the logo/],
  [
    'a PNG of 400 megapixels',
    png({ width: 20_000, height: 20_000, data: BOMB }),
    'invalid_logo',
    /20000 × 20000/,
  ],
  ['a PNG whose size is a lie', png({ width: 16, height: 16, data: BOMB }), 'invalid_logo', /cannot be read/],
  ['a PNG with too few pixels', png({ data: deflateSync(Buffer.alloc(10)) }), 'invalid_logo', /promises/],
  ['a PNG that was cut off', png().subarray(0, 60), 'invalid_logo', /cut off/],
  [
    'a PNG with a length beyond its end',
    Buffer.concat([png().subarray(0, 33), number(0xffffffff), Buffer.from('IDATxxxx')]),
    'invalid_logo',
    /cut off/,
  ],
  ['a PNG without pixels', png({ width: 0 }), 'invalid_logo', /no pixels/],
  [
    'a web page',
    Buffer.from('<html><svg xmlns="http://www.w3.org/2000/svg"/></html>'),
    'unsupported_media_type',
    /PNG or an SVG/,
  ],
  [
    'a JPEG',
    Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46]),
    'unsupported_media_type',
    /PNG or an SVG/,
  ],
  ['an SVG in gzip', Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), 'unsupported_media_type', /PNG or an SVG/],
  ['a PDF', Buffer.from('%PDF-1.7'), 'unsupported_media_type', /PNG or an SVG/],
  ['nothing', Buffer.alloc(0), 'unsupported_media_type', /PNG or an SVG/],
];

/** Files that are drawn, with their size and the colour of a pixel at 40 % of both sides. */
const DRAWN: [name: string, file: Buffer, size: [number, number], colour: string][] = [
  ['a square', svg(SQUARE), [512, 512], '#cc0000'],
  [
    'a wide one at its widest',
    svg('<rect width="100" height="10" fill="#00cc00"/>', 'viewBox="0 0 100 10"'),
    [1024, 102],
    '#00cc00',
  ],
  [
    'one of a hundred thousand units',
    svg('<rect width="100000" height="100000" fill="blue"/>', 'viewBox="0 0 100000 100000"'),
    [512, 512],
    '#0000ff',
  ],
  ['a size in millimetres', svg(SQUARE, 'width="10mm" height="10mm"'), [512, 512], ''],
  [
    'colours of classes',
    svg('<style>.cls-1{fill:#123456}</style><rect class="cls-1" width="10" height="10"/>'),
    [512, 512],
    '#123456',
  ],
  [
    'colours of a style attribute',
    svg('<rect style="fill:#123456;stroke:none" width="10" height="10"/>'),
    [512, 512],
    '#123456',
  ],
  [
    'a gradient',
    svg(
      '<defs><linearGradient id="a"><stop offset="0" stop-color="#0000ff"/><stop offset="1" stop-color="#0000ff"/></linearGradient></defs><rect width="10" height="10" fill="url(#a)"/>',
    ),
    [512, 512],
    '#0000ff',
  ],
  [
    'a gradient that takes its colours from another',
    svg(
      '<defs><linearGradient id="b"><stop stop-color="#00ff00"/></linearGradient><linearGradient id="a" xlink:href="#b"/></defs><rect width="10" height="10" fill="url(#a)"/>',
    ),
    [512, 512],
    '#00ff00',
  ],
  [
    'gradients in a ring',
    svg(
      `<defs><linearGradient id="a" xlink:href="#b"/><linearGradient id="b" xlink:href="#a"/></defs>${SQUARE}<rect width="1" height="1" fill="url(#a)"/>`,
    ),
    [512, 512],
    '#cc0000',
  ],
  [
    'what editors note',
    svg(
      `<metadata>x</metadata><sodipodi:namedview inkscape:zoom="1"><sodipodi:guide/></sodipodi:namedview>${SQUARE}`,
    ),
    [512, 512],
    '#cc0000',
  ],
  [
    'the document type that editors write',
    svg(
      SQUARE,
      'viewBox="0 0 10 10"',
      '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n<!-- made -->',
    ),
    [512, 512],
    '#cc0000',
  ],
  [
    'clips within clips',
    svg(
      `<clipPath id="c" clip-path="url(#c)"><rect width="10" height="10"/></clipPath><g clip-path="url(#c)">${SQUARE}</g>`,
    ),
    [512, 512],
    '#cc0000',
  ],
  [
    'millions of dashes, as one line',
    svg(`${SQUARE}<path d="M0 0L1e6 1e6" stroke="#000" stroke-width="0.001" stroke-dasharray="0.0000001"/>`),
    [512, 512],
    '',
  ],
  ['a PNG', png(), [4, 4], '#ffffff'],
  ['a large PNG, smaller', png({ width: 2_048, height: 1_024 }), [1024, 512], '#ffffff'],
  [
    'an animated PNG, as its first image',
    png({ more: [chunk('acTL', Buffer.concat([number(1_000), number(0)]))] }),
    [4, 4],
    '#ffffff',
  ],
  [
    'a PNG with a bomb among its texts',
    png({
      more: [
        chunk('zTXt', Buffer.concat([Buffer.from('a\0\0'), BOMB])),
        chunk('iCCP', Buffer.concat([Buffer.from('a\0\0'), BOMB])),
      ],
    }),
    [4, 4],
    '#ffffff',
  ],
  [
    'a PNG with a web page behind it',
    png({ after: Buffer.from('<script>alert(1)</script>') }),
    [4, 4],
    '#ffffff',
  ],
];

async function timed<T>(work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    return await work();
  } finally {
    expect(performance.now() - started).toBeLessThan(TIME_MS_MAX);
  }
}

describe('a logo', () => {
  it.each(REFUSED)('with %s is refused, and the problem names why', async (_name, file, code, sentence) => {
    const error = await timed(() =>
      drawLogo(file).then(
        () => undefined,
        (thrown: unknown) => thrown,
      ),
    );
    expect(error).toBeInstanceOf(DomainError);
    expect((error as DomainError).code).toBe(code);
    expect((error as DomainError).message).toMatch(sentence);
  });

  it.each(DRAWN)('with %s is drawn as a plain PNG', async (_name, file, size, colour) => {
    const drawn = await timed(() => drawLogo(file));
    expect([drawn.width, drawn.height]).toEqual(size);
    expect(Buffer.from(drawn.png).toString('latin1')).not.toMatch(/script|acTL|zTXt|iCCP/);
    const image = await loadImage(Buffer.from(drawn.png));
    expect([image.width, image.height]).toEqual(size);
    const canvas = createCanvas(image.width, image.height);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const [red = 0, green = 0, blue = 0] = context.getImageData(
      Math.floor(image.width * 0.4),
      Math.floor(image.height * 0.4),
      1,
      1,
    ).data;
    const found = `#${[red, green, blue].map((value) => value.toString(16).padStart(2, '0')).join('')}`;
    if (colour !== '') expect(found).toBe(colour);
  });

  it('that takes too long or too much memory is refused', async () => {
    const heavy = svg(
      `<clipPath id="c">${'<circle cx="5" cy="5" r="4"/>'.repeat(1_400)}</clipPath>${'<g clip-path="url(#c)"><rect width="10" height="10"/></g>'.repeat(700)}`,
    );
    const limited = createLogoRenderer({ cpuSecondsMax: 4 });
    await expect(limited(heavy)).rejects.toMatchObject({
      code: 'invalid_logo',
      message: expect.stringContaining('too much time or memory'),
    });
  }, 60_000);

  it('is drawn or refused by a process of its own', async () => {
    const render = createLogoRenderer();
    expect(await render(svg(SQUARE))).toMatchObject({ width: 512, height: 512 });
    await expect(render(svg('<script/>'))).rejects.toMatchObject({ code: 'invalid_logo' });
  }, 60_000);
});
