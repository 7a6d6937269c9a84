import { createCanvas, loadImage } from '@napi-rs/canvas';
import { DomainError } from '../../domain/errors.js';
import { isPng, plainPng } from './plainPng.js';
import { plainSvg } from './plainSvg.js';
import { invalidLogo } from './svgTree.js';

/** A logo, drawn again: it has the look of the uploaded file and nothing else of it. */
export interface DrawnLogo {
  png: Uint8Array;
  width: number;
  height: number;
}

/** The size that a page shows sharply. */
const WIDTH_MAX = 1_024;
const HEIGHT_MAX = 512;

/** Draws a PNG or SVG file; only for a process under limits. Errors invalid_logo, unsupported_media_type. */
export async function drawLogo(file: Buffer): Promise<DrawnLogo> {
  const { source, width, height } = isPng(file) ? await openPng(file) : openSvg(file);
  const image = await loadImage(source);
  const canvas = createCanvas(width, height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  if (!data.some((value, at) => at % 4 === 3 && value > 0))
    throw invalidLogo('nothing of the logo can be seen: check its size and its colours');
  return { png: canvas.encodeSync('png'), width, height };
}

async function openPng(file: Buffer) {
  const source = plainPng(file);
  const { width, height } = await loadImage(source);
  return { source, ...fitPage(width, height, 1) };
}

function openSvg(file: Buffer) {
  const svg = plainSvg(textOf(file));
  if (!svg) throw notALogo();
  const size = fitPage(svg.width, svg.height, Number.POSITIVE_INFINITY);
  return { source: Buffer.from(svg.write(size.width, size.height)), ...size };
}

function textOf(file: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(file);
  } catch {
    throw notALogo();
  }
}

const notALogo = () => new DomainError('unsupported_media_type', 'the logo must be a PNG or an SVG in UTF-8');

function fitPage(width: number, height: number, scaleMax: number): { width: number; height: number } {
  const scale = Math.min(WIDTH_MAX / width, HEIGHT_MAX / height, scaleMax);
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}
