import { type Canvas, createCanvas } from '@napi-rs/canvas';
import { PDFDocument } from 'pdf-lib';
import { rasterPages } from './raster.js';

export interface ScanOptions {
  dpi: number;
  seed: number;
}

/** Distortions of one scanned sheet. */
interface Sheet {
  /** Degrees, clockwise. */
  turn: number;
  /** Standard deviation of the noise, of 255 levels. */
  noise: number;
  /** Pixels. */
  blur: number;
  /** Share of missing light at the darkest corner. */
  shade: number;
  /** Direction to that corner, radians. */
  shadeAngle: number;
  /** 0 to 100. */
  quality: number;
  isGrey: boolean;
  paper: string;
}

const TURN_DEGREES_MAX = 2;
const NOISE_TABLE = 1 << 16;

/** Image-only PDF of the same pages with a scanner's distortions: slight rotation, noise, blur, uneven light, JPEG. */
export async function scanInvoice(pdf: Uint8Array, { dpi, seed }: ScanOptions): Promise<Buffer> {
  const random = makeRandom(seed * 7919 + dpi);
  const scanned = await PDFDocument.create({ updateMetadata: false });
  scanned.setProducer('scanner');
  for await (const { canvas, width, height } of rasterPages(pdf, dpi)) {
    const isTurned = canvas.width > canvas.height !== width > height;
    const sheet = drawSheet(random, dpi);
    const jpeg = photograph(canvas, sheet, random).toBuffer('image/jpeg', sheet.quality);
    const page = scanned.addPage(isTurned ? [height, width] : [width, height]);
    page.drawImage(await scanned.embedJpg(jpeg), { x: 0, y: 0, ...page.getSize() });
  }
  return Buffer.from(await scanned.save());
}

function drawSheet(random: () => number, dpi: number): Sheet {
  const between = (low: number, high: number) => low + random() * (high - low);
  return {
    turn: between(-TURN_DEGREES_MAX, TURN_DEGREES_MAX),
    noise: between(3, 11),
    blur: between(0, 0.45) * (dpi / 150),
    shade: between(0.02, 0.22),
    shadeAngle: between(0, 2 * Math.PI),
    quality: Math.round(between(60, 90)),
    isGrey: random() < 0.6,
    paper: random() < 0.5 ? '#ffffff' : '#fbf9f3',
  };
}

function photograph(page: Canvas, sheet: Sheet, random: () => number): Canvas {
  const { width, height } = page;
  const turned = createCanvas(width, height);
  const context = turned.getContext('2d');
  context.fillStyle = sheet.paper;
  context.fillRect(0, 0, width, height);
  context.translate(width / 2, height / 2);
  context.rotate((sheet.turn * Math.PI) / 180);
  context.globalCompositeOperation = 'multiply';
  if (sheet.blur > 0.05) context.filter = `blur(${sheet.blur.toFixed(2)}px)`;
  context.drawImage(page, -width / 2, -height / 2);
  return withSpoiltPixels(turned, sheet, random);
}

function withSpoiltPixels(canvas: Canvas, sheet: Sheet, random: () => number): Canvas {
  const { width, height } = canvas;
  const image = canvas.getContext('2d').getImageData(0, 0, width, height);
  const { data } = image;
  const noise = noiseTable(sheet.noise, random);
  const towardsX = Math.cos(sheet.shadeAngle) / width;
  const towardsY = Math.sin(sheet.shadeAngle) / height;
  let draw = Math.floor(random() * NOISE_TABLE);
  for (let y = 0, at = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1, at += 4) {
      const shade = (x - width / 2) * towardsX + (y - height / 2) * towardsY + 0.5;
      const light = 1 - sheet.shade * Math.min(1, Math.max(0, shade));
      draw = (Math.imul(draw, 1_664_525) + 1_013_904_223) | 0;
      const grain = noise[draw >>> 16] ?? 0;
      let red = data[at] as number;
      let green = data[at + 1] as number;
      let blue = data[at + 2] as number;
      if (sheet.isGrey) red = green = blue = 0.299 * red + 0.587 * green + 0.114 * blue;
      // Uint8ClampedArray clamps to 0…255.
      data[at] = red * light + grain;
      data[at + 1] = green * light + grain;
      data[at + 2] = blue * light + grain;
    }
  }
  // A new canvas, because the other one is rotated.
  const spoilt = createCanvas(width, height);
  spoilt.getContext('2d').putImageData(image, 0, 0);
  return spoilt;
}

/** Normally distributed levels. */
function noiseTable(deviation: number, random: () => number): Float32Array {
  return Float32Array.from(
    { length: NOISE_TABLE },
    () => deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}

function makeRandom(seed: number): () => number {
  let state = (seed ^ 0x5bd1e995) >>> 0;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 4_294_967_296;
  };
}
