/** The branding on the cover and in the foot of an organization's documents. Null: the default. */
export interface StoredBranding {
  brandColor: string | null;
  orgName: string | null;
  footerText: string | null;
  logo: BrandingLogo | null;
}

/** A PNG in the blob store. */
export interface BrandingLogo {
  /** Identifies the file: a UUIDv7, which contains the time of creation. */
  id: string;
  /** Of the PNG, 64 hex digits. */
  sha256: string;
  width: number;
  height: number;
}

/** Branding with its defaults filled in. */
export interface Branding {
  /** `#RRGGBB`, upper case. */
  brandColor: string;
  orgName: string;
  footerText: string;
  logo: BrandingLogo | null;
}

export const DEFAULT_BRAND_COLOR = '#1F4FD8';
export const ORG_NAME_CHARS_MAX = 120;
export const FOOTER_CHARS_MAX = 300;
/** Largest uploaded logo. */
export const LOGO_BYTES_MAX = 2_097_152;

/** `logos/<organization>/<logo>.png` */
export const logoKey = (orgId: string, logoId: string): string => `logos/${orgId}/${logoId}.png`;

/** Fills in what is not set: the organization's own name, and that name with the service's domain as the footer. */
export function brandingOf(stored: StoredBranding | undefined, name: string, host: string): Branding {
  const orgName = stored?.orgName ?? name;
  return {
    brandColor: stored?.brandColor ?? DEFAULT_BRAND_COLOR,
    orgName,
    footerText: stored?.footerText ?? `${orgName} · ${host}`,
    logo: stored?.logo ?? null,
  };
}

const COLOR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i;

/** `#abc` or `#aabbcc` as `#AABBCC`; undefined for anything else. */
export function normalizeColor(text: string): string | undefined {
  if (!COLOR.test(text)) return undefined;
  const digits = text.slice(1).toUpperCase();
  return digits.length === 6 ? `#${digits}` : `#${[...digits].map((digit) => digit + digit).join('')}`;
}

/** Least contrast of text (WCAG 2.2, 1.4.3). */
export const TEXT_CONTRAST_MIN = 4.5;

/** Contrast of two colours `#RRGGBB`, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/**
 * The colour nearest to a brand's colour, darkened as little as it takes, that can be read on white and on which white
 * can be read.
 */
export function textColor(color: string): string {
  // 256 steps of black: one of them is enough, since black on white has the highest contrast.
  for (let black = 0; black < 256; black += 1) {
    const darker = toHex(channelsOf(color).map((channel) => Math.round((channel * (255 - black)) / 255)));
    if (contrast(darker, '#FFFFFF') >= TEXT_CONTRAST_MIN) return darker;
  }
  return '#000000';
}

const channelsOf = (color: string): number[] =>
  [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));

const toHex = (channels: readonly number[]): string =>
  `#${channels.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`.toUpperCase();

/** Relative luminance, 0 to 1 (WCAG 2.2). */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(color).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
