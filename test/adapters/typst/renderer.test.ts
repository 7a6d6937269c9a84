import { describe, expect, it } from 'vitest';
import { RENDERER_LIMITS, Renderer } from '../../../adapters/typst/renderer.js';

const PLAIN = `#let d = json(bytes(sys.inputs.data))
#set document(title: d.name, author: d.name, date: datetime(year: 2026, month: 11, day: 22))
#set text(font: "Inter", fallback: sys.inputs.loose == "yes", lang: "en")
= #d.name`;

const of = (name: string, template = PLAIN) => ({ template, data: { name }, createdSeconds: 1_790_000_000 });

describe('a document', () => {
  it('is the same bytes whenever it is set, tagged and archivable', async () => {
    const renderer = new Renderer();
    const [one, other] = await Promise.all([
      renderer.render(of('Ärger & Søn')),
      renderer.render(of('Ärger & Søn')),
    ]);
    expect(one.equals(other)).toBe(true);
    const text = one.toString('latin1');
    expect(text).toContain('/MarkInfo');
    expect(text).toContain('pdfaid:part');
  });

  it('takes its input as text and never as markup', async () => {
    const name = '#panic() *bold* $x$ <b> @ref [[ // `raw` \\ " = -';
    const pdf = await new Renderer().render(of(name));
    expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
  });

  it('is set with other fonts, and not archivable, where a glyph is in none of the bundled ones', async () => {
    const pdf = await new Renderer().render(of('株式会社'));
    expect(pdf.toString('latin1')).not.toContain('pdfaid:part');
  });

  it.each([
    ['a fault of the template', '#panic("no")', RENDERER_LIMITS, /cannot be set: \S/],
    [
      'a fault of native code',
      `#image(bytes("<svg xmlns='http://www.w3.org/2000/svg'>" + "<g>" * 30000 + "</g>" * 30000 + "</svg>"), format: "svg")`,
      RENDERER_LIMITS,
      /cannot be set/,
    ],
    [
      'too much time',
      '#let n = 0\n#while n < 1000000000 { n += 1 }',
      { ...RENDERER_LIMITS, timeoutMs: 10 },
      /the time for it is over/,
    ],
    ['too much data', PLAIN, { ...RENDERER_LIMITS, dataBytesMax: 4 }, /larger than 4 bytes/],
    ['too large a document', PLAIN, { ...RENDERER_LIMITS, pdfBytesMax: 4 }, /larger than 4 bytes/],
  ])(
    'reports that it cannot be set after %s, and this process goes on',
    async (_name, template, limits, why) => {
      const failed = new Renderer(limits).render(of('name', template));
      await expect(failed).rejects.toMatchObject({
        code: 'document_failed',
        message: expect.stringMatching(why),
      });
    },
  );

  it('waits for its turn where as many are set as may be at once', async () => {
    const renderer = new Renderer({ ...RENDERER_LIMITS, atOnce: 1 });
    const done = await Promise.all(['a', 'b', 'c'].map((name) => renderer.render(of(name))));
    expect(new Set(done.map((pdf) => pdf.toString('latin1'))).size).toBe(3);
  });
});
