import { addDays } from '../../parts/forms/Period';
import css from './Branding.module.css';
import { SECTION_OPTIONS } from './sections';

/** The first page of a report, as the fields of the branding make it. */
export function Cover({
  logoUrl,
  color,
  name,
  footer,
}: {
  logoUrl: string;
  color: string;
  name: string;
  footer: string;
}) {
  const today = new Date().toISOString().slice(0, 10);
  return (
    <figure aria-label="Preview of the cover">
      <div className={css.paper}>
        <div className={css.sheet}>
          {logoUrl ? <img className={css.logo} src={logoUrl} alt="Logo" /> : <span className={css.noLogo} />}
          <p className={css.title} style={{ color: readable(color), borderColor: color }}>
            Management report
          </p>
          <p className={css.name}>{name || 'Name of the organization'}</p>
          <p className={css.period}>
            {addDays(today, -30)} – {addDays(today, -1)}
          </p>
          <p className={css.contents}>Contents</p>
          {SECTION_OPTIONS.map((section) => (
            <p key={section.value} className={css.entry}>
              {section.label}
            </p>
          ))}
          <p className={css.footer}>{footer || 'Name and address of this service'}</p>
        </div>
      </div>
    </figure>
  );
}

/** Contrast with white that text needs. */
const CONTRAST_MIN = 4.5;
const DARKEN = 0.96;

/** The colour, darkened until it can be read on white, as the document does. */
function readable(hex: string): string {
  const digits = hex.replace('#', '');
  const pairs = digits.length === 3 ? digits.replace(/./g, '$&$&') : digits;
  let rgb = [0, 2, 4].map((at) => Number.parseInt(pairs.slice(at, at + 2), 16));
  while (1.05 / (luminance(rgb) + 0.05) < CONTRAST_MIN) rgb = rgb.map((one) => Math.floor(one * DARKEN));
  return `rgb(${rgb.join(' ')})`;
}

function luminance(rgb: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((one) => {
    const share = one / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
