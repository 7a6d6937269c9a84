import { deflateSync } from 'node:zlib';

/** A PDF of these objects, the first being its catalog, with a right table of their places. */
export function writePdf(objects: readonly (string | Buffer)[], trailer = ''): Uint8Array {
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n')];
  const places: number[] = [];
  let length = parts[0]?.length ?? 0;
  const add = (part: Buffer) => {
    parts.push(part);
    length += part.length;
  };
  for (const [at, body] of objects.entries()) {
    places.push(length);
    add(Buffer.concat([Buffer.from(`${at + 1} 0 obj\n`), Buffer.from(body), Buffer.from('\nendobj\n')]));
  }
  const table = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('');
  const start = length;
  add(
    Buffer.from(
      `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`,
    ),
  );
  return new Uint8Array(Buffer.concat(parts));
}

export function stream(content: Buffer, entries = ''): Buffer {
  return Buffer.concat([
    Buffer.from(`<< /Length ${content.length} ${entries} >>\nstream\n`),
    content,
    Buffer.from('\nendstream'),
  ]);
}

/** One page with this content. `catalog` and `more` objects (from number 6 on) are added. */
export function textPdf(
  content: Buffer,
  entries = '',
  { catalog = '', more = [] as (string | Buffer)[], trailer = '' } = {},
): Uint8Array {
  return writePdf(
    [
      `<< /Type /Catalog /Pages 2 0 R ${catalog} >>`,
      '<< /Type /Pages /Count 1 /Kids [3 0 R] >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
      stream(content, entries),
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
      ...more,
    ],
    trailer,
  );
}

export function flateOf(content: Buffer): Uint8Array {
  return textPdf(deflateSync(content), '/Filter /FlateDecode');
}
