// Light and dark: what the system asks for, unless the reader chose.

export type ThemeName = 'light'|'dark';
type Choice = ThemeName|'auto';

const kStorageKey = 'tamis-report-theme';
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
const listeners: (() => void)[] = [];
let choice: Choice = stored();

// A page from a file may be refused its storage; then the choice lasts as long as the page.
function stored(): Choice {
  try {
    const value = localStorage.getItem(kStorageKey);
    return value === 'light' || value === 'dark' ? value : 'auto';
  } catch {
    return 'auto';
  }
}

function store(value: Choice): void {
  try {
    localStorage.setItem(kStorageKey, value);
  } catch {
    // See stored().
  }
}

export function themeChoice(): Choice {
  return choice;
}

export function themeName(): ThemeName {
  if (choice !== 'auto') return choice;
  return systemDark.matches ? 'dark' : 'light';
}

function apply(): void {
  document.documentElement.dataset['theme'] = themeName();
  for (const listener of listeners) listener();
}

// Auto, light, dark, and auto again.
export function nextTheme(): void {
  choice = choice === 'auto' ? 'light' : choice === 'light' ? 'dark' : 'auto';
  store(choice);
  apply();
}

export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

export function startTheme(): void {
  systemDark.addEventListener('change', apply);
  apply();
}

// The value of a custom property of the style sheet, which is the one place for plain colours.
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
